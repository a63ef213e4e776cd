# Operators with rules for vmap. For each one there is the same operator without a rule, to which the test gives the
# same rule in Python.
cimport ATen as at
from interop cimport check, elementwise, kernel, make_tuple, tuple2, tuple3
from libc.stdint cimport int64_t
from libcpp cimport bool
from libcpp.optional cimport optional
from libcpp.vector cimport vector
from torch.autograd cimport Context, Function
from torch.library cimport Operator, Randomness, Tag, VmapInfo, define, impl, register_autograd, register_vmap


# s * a @ b. The kernel reads memory, so it cannot be called with the tensors of vmap.

cdef at.Tensor product(const at.Tensor& a, const at.Tensor& b, double s) except * nogil:
    cdef const double* data = a.contiguous().const_data_ptr[double]()
    return at.mul(at.mm(a, b), s) if data != NULL else at.Tensor()


cdef at.Tensor product_meta(const at.Tensor& a, const at.Tensor& b, double s) except * nogil:
    return at.mm(a, b)


cdef void product_setup(
        Context& ctx, const at.Tensor& a, const at.Tensor& b, double s, const at.Tensor& result) except * nogil:
    ctx.save_for_backward(a, b)
    ctx.state[double]()[0] = s


cdef (at.Tensor, at.Tensor, at.Tensor) product_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef double s = ctx.state[double]()[0]
    cdef at.Tensor a = ctx.saved_tensor(0), b = ctx.saved_tensor(1)
    return at.mul(at.mm(grad, b.t()), s), at.mul(at.mm(a.t(), grad), s), at.Tensor()


cdef at.Tensor product_jvp(
        Context& ctx, const at.Tensor& da, const at.Tensor& db, const at.Tensor& ds) except * nogil:
    cdef at.Tensor a = ctx.saved_tensor(0), b = ctx.saved_tensor(1)
    return at.mul(at.add(at.mm(da, b), at.mm(a, db)), ctx.state[double]()[0])


cdef at.Tensor at_front(const at.Tensor& x, int64_t dim) except * nogil:
    return x if dim < 0 else x.movedim(dim, 0)


cdef at.Tensor product_rule(VmapInfo& info, const at.Tensor& a, const at.Tensor& b, double s) except * nogil:
    return at.mul(at.matmul(at_front(a, info.in_dim(0)), at_front(b, info.in_dim(1))), s)


cdef at.Tensor noting_rule(VmapInfo& info, const at.Tensor& a, const at.Tensor& b, double s) except * nogil:
    with gil:
        seen.append((info.batch_size(), (info.in_dim(0), info.in_dim(1), info.in_dim(2)), s))
    return product_rule(info, a, b, s)


seen = []  # what rules were given

for name in (b"interop_vmap::product", b"interop_vmap::product_traced", b"interop_vmap::product_in_python"):
    define(name, "(Tensor a, Tensor b, float s) -> Tensor", Tag.pt2_compliant_tag)
    impl(name, "CPU", product)
    impl(name, "Meta", product_meta)
    register_autograd(name, product_backward, product_setup, product_jvp)
register_vmap("interop_vmap::product", noting_rule)
register_vmap("interop_vmap::product_traced", product_rule)


# The same loop as a kernel, which has a gradient, and as a rule, which would have none.

cdef double _cubed(double x) noexcept nogil:
    return x * x * x


cdef at.Tensor cube(const at.Tensor& x) except * nogil:
    return elementwise(b"cube", kernel(_cubed), x)


cdef at.Tensor cube_meta(const at.Tensor& x) except * nogil:
    return at.empty_like(x)


cdef void cube_setup(Context& ctx, const at.Tensor& x, const at.Tensor& result) except * nogil:
    ctx.save_for_backward(x)


cdef at.Tensor cube_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef at.Tensor x = ctx.saved_tensor(0)
    return at.mul(at.mul(at.mul(x, x), 3), grad)


cdef at.Tensor looping_rule(VmapInfo& info, const at.Tensor& x) except * nogil:
    return elementwise(b"cube", kernel(_cubed), at_front(x, info.in_dim(0)))


cdef at.Tensor calling_rule(VmapInfo& info, const at.Tensor& x) except * nogil:
    return Operator[at.Tensor](b"interop_vmap::cube").call(at_front(x, info.in_dim(0)))


cdef at.Tensor cube_forward(Context& ctx, const at.Tensor& x) except * nogil:
    ctx.save_for_backward(x)
    return cube(x)


cdef Function[at.Tensor] cube_function
cube_function.define("Cube", cube_forward, cube_backward)


cdef at.Tensor applying_rule(VmapInfo& info, const at.Tensor& x) except * nogil:
    return cube_function.apply(at_front(x, info.in_dim(0)))


for name in (
        b"interop_vmap::cube", b"interop_vmap::cube_of_looping_rule", b"interop_vmap::cube_of_calling_rule",
        b"interop_vmap::cube_of_applying_rule"):
    define(name, "(Tensor x) -> Tensor", Tag.pt2_compliant_tag)
    impl(name, "CPU", cube)
    impl(name, "Meta", cube_meta)
    register_autograd(name, cube_backward, cube_setup)
register_vmap("interop_vmap::cube_of_looping_rule", looping_rule)
register_vmap("interop_vmap::cube_of_calling_rule", calling_rule)
register_vmap("interop_vmap::cube_of_applying_rule", applying_rule)


# Lists and optional tensors: the products of x with each tensor of `others` and with `last`. All of them have the shape
# of x. A result whose factors have no examples has none either. The sum of `others` is a list of one element.

ctypedef tuple3[at.Tensor, vector[at.Tensor], int64_t] products_t

cdef products_t products(
        const at.Tensor& x, const vector[at.Tensor]& others, const vector[optional[at.Tensor]]& gaps,
        const optional[at.Tensor]& last) except * nogil:
    cdef vector[at.Tensor] each
    cdef at.Tensor total = at.mul(x, last.value()) if last.has_value() else x.clone()
    cdef int64_t missing = 0
    cdef size_t i
    for i in range(others.size()):
        each.push_back(at.mul(others[i], 2))
    for i in range(gaps.size()):
        if gaps[i].has_value():
            total = at.add(total, gaps[i].value())
        else:
            missing += 1
    return make_tuple(total, each, missing)


cdef products_t products_rule(
        VmapInfo& info, const at.Tensor& x, const vector[at.Tensor]& others,
        const vector[optional[at.Tensor]]& gaps, const optional[at.Tensor]& last) except * nogil:
    cdef vector[optional[at.Tensor]] moved
    cdef optional[at.Tensor] moved_last
    cdef at.Tensor all_of_x = at_front(x, info.in_dim(0))
    cdef size_t i
    if info.in_dim(0) < 0:
        all_of_x = at.repeat_interleave_symint(x.unsqueeze(0), info.sym_batch_size(), 0)
    for i in range(gaps.size()):
        if gaps[i].has_value():
            moved.push_back(optional[at.Tensor](at_front(gaps[i].value(), info.in_dim(2, i))))
        else:
            moved.push_back(optional[at.Tensor]())
    if last.has_value():
        moved_last = optional[at.Tensor](at_front(last.value(), info.in_dim(3)))
    for i in range(others.size()):
        info.set_out_dim(1, i, info.in_dim(1, i))
    return products(all_of_x, others, moved, moved_last)


for name in (b"interop_vmap::products", b"interop_vmap::products_in_python"):
    define(name, "(Tensor x, Tensor[] others, Tensor?[] gaps, Tensor? last=None) -> (Tensor, Tensor[], int)")
    impl(name, "CPU", products)
register_vmap("interop_vmap::products", products_rule)


# Operators that change an argument, with and without a result.

cdef at.Tensor scale_(at.Tensor& x, const at.Tensor& factor) except * nogil:
    return x.mul_(factor)


cdef at.Tensor scale_rule(VmapInfo& info, at.Tensor& x, const at.Tensor& factor) except * nogil:
    check(info.in_dim(0) >= 0, b"scale_ cannot change an argument that all examples share")
    x.movedim(info.in_dim(0), -1).mul_(factor)
    return x


cdef void fill_(at.Tensor& x, double value) except * nogil:
    x.fill_(value)


cdef void fill_rule(VmapInfo& info, at.Tensor& x, double value) except * nogil:
    x.fill_(value + info.batch_size())


for name in (b"interop_vmap::scale_", b"interop_vmap::scale_in_python_"):
    define(name, "(Tensor(a!) x, Tensor factor) -> Tensor(a!)")
    impl(name, "CPU", scale_)
register_vmap("interop_vmap::scale_", scale_rule)
define("interop_vmap::fill_", "(Tensor(a!) x, float value) -> ()")
impl("interop_vmap::fill_", "CPU", fill_)
register_vmap("interop_vmap::fill_", fill_rule)


# The same tensor may be given twice: only the argument of the schema is the result.

cdef at.Tensor double_out(const at.Tensor& x, at.Tensor& out) except * nogil:
    return out.mul_(2)


cdef at.Tensor double_out_rule(VmapInfo& info, const at.Tensor& x, at.Tensor& out) except * nogil:
    return out.mul_(2)


cdef vector[at.Tensor] double_each(const vector[at.Tensor]& xs) except * nogil:
    cdef at.Tensor x
    cdef size_t i
    for i in range(xs.size()):
        x = xs[i]
        x.mul_(2)
    return xs


cdef vector[at.Tensor] double_each_rule(VmapInfo& info, const vector[at.Tensor]& xs) except * nogil:
    return double_each(xs)


for name in (b"interop_vmap::double_out", b"interop_vmap::double_out_in_python"):
    define(name, "(Tensor x, Tensor(a!) out) -> Tensor(a!)")
    impl(name, "CPU", double_out)
for name in (b"interop_vmap::double_each", b"interop_vmap::double_each_in_python"):
    define(name, "(Tensor(a!)[] xs) -> Tensor(a!)[]")
    impl(name, "CPU", double_each)
register_vmap("interop_vmap::double_out", double_out_rule)
register_vmap("interop_vmap::double_each", double_each_rule)


# What a rule reads, as results that are not tensors; and an operator that is made of others.

cdef tuple3[int64_t, double, bool] facts(const at.Tensor& x, bint flag, int64_t number, float value) except * nogil:
    return make_tuple(<int64_t>-1, <double>value, <bool>False)


cdef tuple3[int64_t, double, bool] facts_rule(
        VmapInfo& info, const at.Tensor& x, bint flag, int64_t number, float value) except * nogil:
    return make_tuple(info.batch_size() + number, <double>value, <bool>flag)


define("interop_vmap::facts", "(Tensor x, bool flag, int number, float value) -> (int, float, bool)")
impl("interop_vmap::facts", "CPU", facts)
register_vmap("interop_vmap::facts", facts_rule)


# Under randomness="different", a random operator makes a tensor of vmap in a rule as well. So this one makes the noise
# of one example.

cdef at.Tensor noise(const at.Tensor& x) except * nogil:
    return at.rand_like(x)


cdef at.Tensor noise_rule(VmapInfo& info, const at.Tensor& x) except * nogil:
    with gil:
        seen.append({Randomness.error: "error", Randomness.same: "same", Randomness.different: "different"}[
            info.randomness()])
    info.set_out_dim(0, -1)
    return at.rand_like(x.select(info.in_dim(0), 0))


for name in (b"interop_vmap::noise", b"interop_vmap::noise_in_python"):
    define(name, "(Tensor x) -> Tensor")
    impl(name, "CompositeExplicitAutograd", noise)
register_vmap("interop_vmap::noise", noise_rule)


# A rule that reads a size as a number, which is fine unless it is symbolic.

cdef at.Tensor repeated(const at.Tensor& x, const at.SymInt& n) except * nogil:
    return at.repeat_interleave_symint(x, n, 0)


cdef at.Tensor repeated_rule(VmapInfo& info, const at.Tensor& x, const at.SymInt& n) except * nogil:
    info.set_out_dim(0, 1)
    return at.repeat_interleave_symint(at_front(x, info.in_dim(0)).movedim(0, 1), n, 0)


cdef at.Tensor repeated_by_number(VmapInfo& info, const at.Tensor& x, int64_t n) except * nogil:
    return repeated_rule(info, x, at.SymInt(n))


cdef at.Tensor counted_rule(VmapInfo& info, const at.Tensor& x, const at.SymInt& n) except * nogil:
    return at.mul(repeated_rule(info, x, n), info.batch_size())


for name in (b"interop_vmap::repeated", b"interop_vmap::repeated_by_number", b"interop_vmap::counted"):
    define(name, "(Tensor x, SymInt n) -> Tensor")
    impl(name, "CompositeExplicitAutograd", repeated)
register_vmap("interop_vmap::repeated", repeated_rule)
register_vmap("interop_vmap::repeated_by_number", repeated_by_number)
register_vmap("interop_vmap::counted", counted_rule)


# What a rule can do wrong in a call.

cdef tuple2[at.Tensor, int64_t] wrong(const at.Tensor& x, const vector[at.Tensor]& xs, int64_t what) except * nogil:
    return make_tuple(x.clone(), what)


cdef tuple2[at.Tensor, int64_t] wrong_rule(
        VmapInfo& info, const at.Tensor& x, const vector[at.Tensor]& xs, int64_t what) except * nogil:
    cdef at.Tensor y = x
    if what == 0:
        with gil:
            raise KeyError("a key")
    elif what == 1:
        info.set_out_dim(0, 2)
    elif what == 2:
        info.set_out_dim(0, 1)
    elif what == 3:
        info.set_out_dim(0, -2)
    elif what == 4:
        info.set_out_dim(2, 0)
    elif what == 5:
        info.set_out_dim(-1, 0, 0)
    elif what == 6:
        info.set_out_dim(0, -1, 0)
    elif what == 7:
        info.in_dim(3)
    elif what == 8:
        info.in_dim(-1)
    elif what == 9:
        info.in_dim(1)
    elif what == 10:
        info.in_dim(1, 2)
    elif what == 11:
        info.in_dim(1, -1)
    elif what == 12:
        at.mm(x, x.t().unsqueeze(0))
    elif what == 13:
        y = at.sum(x)
    elif what == 14:
        info.set_out_dim(1, 1)
    elif what == 15:
        y = at.rand_like(x)
    elif what == 16:
        info.set_out_dim(0, 1, 0)
    return make_tuple(y, what)


define("interop_vmap::wrong", "(Tensor x, Tensor[] xs, int what) -> (Tensor, int)")
impl("interop_vmap::wrong", "CPU", wrong)
register_vmap("interop_vmap::wrong", wrong_rule)


# Rules that cannot be registered.

cdef at.Tensor of_one(VmapInfo& info, const at.Tensor& x) except * nogil:
    return x


cdef at.Tensor of_int(VmapInfo& info, const at.Tensor& a, const at.Tensor& b, int64_t s) except * nogil:
    return a


cdef void of_nothing(VmapInfo& info, const at.Tensor& a, const at.Tensor& b, double s) except * nogil:
    pass


cdef at.Tensor of_a_change(VmapInfo& info, at.Tensor& a, const at.Tensor& b, double s) except * nogil:
    return a


def refused(str what):
    if what == "unknown operator":
        register_vmap("interop_vmap::unknown", of_one)
    elif what == "name":
        register_vmap("unknown", of_one)
    elif what == "twice":
        register_vmap("interop_vmap::product", product_rule)
    elif what == "after Python":
        register_vmap("interop_vmap::product_in_python", product_rule)
    elif what == "number of arguments":
        register_vmap("interop_vmap::unmapped", of_one)
    elif what == "type of an argument":
        register_vmap("interop_vmap::unmapped", of_int)
    elif what == "result":
        register_vmap("interop_vmap::unmapped", of_nothing)
    elif what == "change that is not in the schema":
        register_vmap("interop_vmap::unmapped", of_a_change)


define("interop_vmap::unmapped", "(Tensor a, Tensor b, float s) -> Tensor")
