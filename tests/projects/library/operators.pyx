# Operators whose kernels, meta kernels and gradients are written here, one of each kind.
cimport ATen as at
cimport torch
from interop cimport get0, get1, make_tuple, tuple2, tuple3
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.optional cimport optional
from libcpp.string cimport string
from libcpp.vector cimport vector
from torch.autograd cimport Context
from torch.library cimport Operator, Tag, define, impl, register_autocast, register_autograd


# A functional operator with everything: the example of the guide.

cdef at.Tensor scaled_mm(const at.Tensor& a, const at.Tensor& b, double s) except * nogil:
    return at.mul(at.mm(a, b), s)


cdef at.Tensor scaled_mm_meta(const at.Tensor& a, const at.Tensor& b, double s) except * nogil:
    return at.mm(a, b)


cdef void scaled_mm_setup(
        Context& ctx, const at.Tensor& a, const at.Tensor& b, double s, const at.Tensor& result) except * nogil:
    ctx.save_for_backward(a, b)
    ctx.state[double]()[0] = s


cdef (at.Tensor, at.Tensor, at.Tensor) scaled_mm_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef at.Tensor a = ctx.saved_tensor(0), b = ctx.saved_tensor(1), da, db, none
    cdef double s = ctx.state[double]()[0]
    cdef Operator[at.Tensor] again = Operator[at.Tensor](b"interop_test::scaled_mm")
    if ctx.needs_input_grad(0):
        da = again.call(grad, b.t(), s)
    if ctx.needs_input_grad(1):
        db = again.call(a.t(), grad, s)
    return da, db, none


define("interop_test::scaled_mm", "(Tensor a, Tensor b, float s) -> Tensor", Tag.pt2_compliant_tag)
impl("interop_test::scaled_mm", "CPU", scaled_mm)
impl("interop_test::scaled_mm", "Meta", scaled_mm_meta)
register_autograd("interop_test::scaled_mm", scaled_mm_backward, scaled_mm_setup)
register_autocast("interop_test::scaled_mm", "cpu", at.kBFloat16)


# Autocast with the dtype of the region.

cdef at.Tensor product(const at.Tensor& a, const at.Tensor& b) except * nogil:
    return at.mm(a, b)


define("interop_test::product", "(Tensor a, Tensor b) -> Tensor")
impl("interop_test::product", "CPU", product)
register_autocast("interop_test::product", "cpu")


# Exceptions declared in every way that Cython has.

cdef at.Tensor twice_star(const at.Tensor& x) except * nogil:
    return at.mul(x, 2)


cdef at.Tensor twice_plus(const at.Tensor& x) except + nogil:
    return at.mul(x, 2)


cdef at.Tensor twice_noexcept(const at.Tensor& x) noexcept nogil:
    return at.mul(x, 2)


cdef at.Tensor twice_with_gil(const at.Tensor& x) except * with gil:
    return at.mul(x, len("xx"))


define("interop_test::twice_star", "(Tensor x) -> Tensor")
impl("interop_test::twice_star", "CompositeExplicitAutograd", twice_star)
define("interop_test::twice_plus", "(Tensor x) -> Tensor")
impl("interop_test::twice_plus", "default", twice_plus)
define("interop_test::twice_noexcept", "(Tensor x) -> Tensor")
impl("interop_test::twice_noexcept", "CompositeExplicit", twice_noexcept)
define("interop_test::twice_implicit", "(Tensor x) -> Tensor")
impl("interop_test::twice_implicit", "CompositeImplicitAutograd", twice_star)
define("interop_test::twice_with_gil", "(Tensor x) -> Tensor")
impl("interop_test::twice_with_gil", "cpu", twice_with_gil)


# Every kind of argument and of result. The kernels hand back what they were given.

cdef (int64_t, double, bint, cbool, int64_t, double) numbers(
        int64_t i, double f, bint b, cbool c, optional[int64_t] oi, optional[double] of) except * nogil:
    return i, f, b, c, oi.value_or(-1), of.value_or(-1.0)


cdef (int64_t, double) narrow(int i, float f) except * nogil:
    return i, f


cdef (at.Scalar, at.Scalar) scalars(const at.Scalar& a, at.Scalar b) except * nogil:
    return a, b


cdef vector[int64_t] ints(at.IntArrayRef a, const vector[int64_t]& b, optional[vector[int64_t]] c) except * nogil:
    cdef vector[int64_t] result, more
    cdef int64_t i
    for i in range(<int64_t> a.size()):
        result.push_back(a[i])
    for i in range(<int64_t> b.size()):
        result.push_back(b[i])
    if c.has_value():
        more = c.value()
        for i in range(<int64_t> more.size()):
            result.push_back(more[i])
    return result


cdef vector[at.Tensor] tensors(
        const vector[at.Tensor]& all, optional[at.Tensor] maybe, const optional[at.Tensor]& other) except * nogil:
    cdef vector[at.Tensor] result = all
    if maybe.has_value():
        result.push_back(maybe.value())
    if other.has_value():
        result.push_back(other.value())
    return result


cdef string text(const string& a, string b) except * nogil:
    return a + b


cdef at.Tensor types(at.ScalarType dtype, optional[at.ScalarType] other, at.Device device) except * nogil:
    return at.zeros((1,), at.TensorOptions(other.value_or(dtype)).device(device))


cdef at.Tensor maybe_types(
        optional[at.Device] device, const optional[vector[double]]& numbers, optional[vector[at.SymInt]] sizes,
        const optional[at.Device]& other) except * nogil:
    cdef vector[at.SymInt] shape
    if sizes.has_value():
        shape = sizes.value()
    cdef at.Tensor result = at.full_symint(shape, 1.0, at.TensorOptions(device.value_or(at.Device(b"cpu"))))
    cdef double number
    if numbers.has_value():
        for number in numbers.value():
            result = at.add(result, number)
    return result.to(other.value_or(result.device()))


cdef at.Tensor by_value(at.Tensor x) except * nogil:
    x = at.add(x, 1)
    return x


cdef tuple2[at.Tensor, at.Tensor] pair(const at.Tensor& x) except * nogil:
    return at.max(x, 0)


cdef tuple2[at.Tensor, at.Tensor] made_pair(const at.Tensor& x) except * nogil:
    cdef tuple2[at.Tensor, at.Tensor] both = at.max(x, 0)
    return make_tuple(get0(both), get1(both))


cdef tuple3[at.SymInt, int64_t, double] made_three(const at.Tensor& x) except * nogil:
    return make_tuple(x.sym_size(0), x.dim(), 0.5)


cdef double total(const at.Tensor& x) except? -1 nogil:
    return at.sum(x).item[double]()


define(
    "interop_test::numbers",
    "(int i, float f, bool b, bool c, int? oi=None, float? of=None) -> (int, float, bool, bool, int, float)")
impl("interop_test::numbers", "CompositeExplicit", numbers)
define("interop_test::narrow", "(int i, float f) -> (int, float)")
impl("interop_test::narrow", "CompositeExplicit", narrow)
define("interop_test::scalars", "(Scalar a, Scalar b) -> (Scalar, Scalar)")
impl("interop_test::scalars", "CompositeExplicit", scalars)
define("interop_test::ints", "(int[] a, int[] b, int[]? c=None) -> int[]")
impl("interop_test::ints", "CompositeExplicit", ints)
define("interop_test::tensors", "(Tensor[] all, Tensor? maybe=None, Tensor? other=None) -> Tensor[]")
impl("interop_test::tensors", "CompositeExplicit", tensors)
define("interop_test::text", "(str a, str b='!') -> str")
impl("interop_test::text", "CompositeExplicit", text)
define("interop_test::types", "(ScalarType dtype, ScalarType? other, Device device) -> Tensor")
impl("interop_test::types", "CompositeExplicit", types)
define(
    "interop_test::maybe_types",
    "(Device? device=None, float[]? numbers=None, SymInt[]? sizes=None, Device? other=None) -> Tensor",
)
impl("interop_test::maybe_types", "CompositeExplicit", maybe_types)
define("interop_test::by_value", "(Tensor x) -> Tensor")
impl("interop_test::by_value", "CompositeExplicit", by_value)
define("interop_test::pair", "(Tensor x) -> (Tensor, Tensor)")
impl("interop_test::pair", "CompositeExplicit", pair)
define("interop_test::made_pair", "(Tensor x) -> (Tensor, Tensor)")
impl("interop_test::made_pair", "CompositeExplicit", made_pair)
define("interop_test::made_three", "(Tensor x) -> (SymInt, int, float)")
impl("interop_test::made_three", "CompositeExplicit", made_three)
define("interop_test::total", "(Tensor x) -> float")
impl("interop_test::total", "CompositeExplicit", total)


# Operators that change their arguments.

cdef void add_one_(at.Tensor& x) except * nogil:
    x.add_(1)


cdef void add_one_meta(at.Tensor& x) except * nogil:
    pass


cdef void replace_(at.Tensor& x) except * nogil:
    x.zero_()
    x = at.ones_like(x)  # another tensor: the caller's stays what it was


cdef at.Tensor scaled_out(const at.Tensor& x, double s, at.Tensor& out) except * nogil:
    at.mul_out(out, x, at.scalar_tensor(s))
    return out


cdef void add_all_(at.Tensor& x, const vector[at.Tensor]& ys) except * nogil:
    x.add_(at.sum(at.stack(ys), 0))


define("interop_test::add_all_", "(Tensor(a!) x, Tensor[] ys) -> ()")
impl("interop_test::add_all_", "CPU", add_all_)
define("interop_test::add_one_", "(Tensor(a!) x) -> ()", Tag.pt2_compliant_tag)
impl("interop_test::add_one_", "CPU", add_one_)
impl("interop_test::add_one_", "Meta", add_one_meta)
define("interop_test::replace_", "(Tensor(a!) x) -> ()")
impl("interop_test::replace_", "CPU", replace_)
define("interop_test::scaled.out", "(Tensor x, float s, *, Tensor(a!) out) -> Tensor(a!)")
impl("interop_test::scaled.out", "CPU", scaled_out)


# Lists, with gradients.

cdef at.Tensor weighted(const vector[at.Tensor]& xs, const at.Tensor& w) except * nogil:
    return at.mul(at.sum(at.stack(xs), 0), w)


cdef void weighted_setup(
        Context& ctx, const vector[at.Tensor]& xs, const at.Tensor& w, const at.Tensor& result) except * nogil:
    cdef vector[at.Tensor] kept = xs
    kept.push_back(w)
    ctx.save_for_backward(kept)


cdef vector[at.Tensor] weighted_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef size_t i, count = ctx.saved_tensors() - 1
    cdef vector[at.Tensor] grads, xs
    for i in range(count):
        xs.push_back(ctx.saved_tensor(i))
        grads.push_back(at.mul(grad, ctx.saved_tensor(count)))
    grads.push_back(at.mul(grad, at.sum(at.stack(xs), 0)))
    return grads


define("interop_test::weighted", "(Tensor[] xs, Tensor w) -> Tensor", Tag.pt2_compliant_tag)
impl("interop_test::weighted", "CompositeExplicit", weighted)
register_autograd("interop_test::weighted", weighted_backward, weighted_setup)


def handed_on(bint meta):
    cdef optional[at.Device] device
    if meta:
        device = at.Device(b"meta")
    return torch.wrap(Operator[at.Tensor](b"interop_test::maybe_types").call(device))


# Elements of lists, values of optionals and parameters are references to Cython: in calls of every kind.

cdef at.Tensor folded(
        const vector[at.Tensor]& xs, const at.Tensor& x, const optional[double]& s, const optional[at.Tensor]& y,
        const vector[int64_t]& dims) except * nogil:
    cdef Operator[at.Tensor] add = Operator[at.Tensor](b"aten::add.Tensor")
    cdef vector[at.Tensor] own = xs
    cdef at.Tensor total = at.zeros_like(x), cat
    cdef size_t i
    for i in range(xs.size()):
        total = at.add(total, xs[i])
        total = at.add(xs[i], total, 1)
        total = total.add(own[i])
        total = total + own[i]
    total = add.call(total, xs.at(0), s.value_or(1.0))
    total = at.mul(total, s.value_or(1.0))
    total = at.mul(total, own.at(0))
    if s.has_value():
        total = at.sub(total, s.value())
    if y.has_value():
        total = at.mul(total, y.value())
    cat = at.cat((total, x, own[0], xs[0]), dims[0])
    cat = cat.sum(dims[1], True)
    return cat.expand_symint((cat.sym_size(0), dims[2]))


define("interop_test::folded", "(Tensor[] xs, Tensor x, float? s, Tensor? y, int[] dims) -> Tensor")
impl("interop_test::folded", "CompositeImplicit", folded)


# A list of results, with a gradient, and lists of tensors that may be missing, whose kernels are Python's. Autocast
# casts what is in lists, too.

cdef vector[at.Tensor] halves(const at.Tensor& x) except * nogil:
    cdef vector[at.Tensor] result
    result.push_back(at.mul(x, 0.5))
    result.push_back(at.mul(x, -0.5))
    return result


cdef void halves_setup(Context& ctx, const at.Tensor& x, const vector[at.Tensor]& result) except * nogil:
    pass


cdef at.Tensor halves_backward(Context& ctx, const vector[at.Tensor]& grads) except * nogil:
    return at.mul(at.sub(grads.at(0), grads.at(1)), 0.5)


define("interop_test::halves", "(Tensor x) -> Tensor[]")
impl("interop_test::halves", "CompositeExplicit", halves)
register_autograd("interop_test::halves", halves_backward, halves_setup)

register_autocast("interop_test::tensors", "cpu")
define("interop_test::gaps", "(Tensor?[] xs) -> Tensor[]")
define("interop_test::add_gaps_", "(Tensor(a!) x, Tensor?[] ys) -> ()")
register_autocast("interop_test::gaps", "cpu")


# Several results, one of them an integer, and a kernel that reads data: the gradient needs an operator of its own.

cdef (at.Tensor, at.Tensor) largest(const at.Tensor& x) except * nogil:
    cdef tuple2[at.Tensor, at.Tensor] both = at.max(x, -1)
    return get0(both), get1(both)


cdef void largest_setup(
        Context& ctx, const at.Tensor& x, const at.Tensor& value, const at.Tensor& index) except * nogil:
    ctx.save_for_backward(x, index)


cdef at.Tensor largest_backward(Context& ctx, const at.Tensor& grad, const at.Tensor& unused) except * nogil:
    cdef at.Tensor x = ctx.saved_tensor(0), index = ctx.saved_tensor(1)
    return at.scatter(at.zeros_like(x), -1, index.unsqueeze(-1), grad.unsqueeze(-1))


define("interop_test::largest", "(Tensor x) -> (Tensor, Tensor)", Tag.pt2_compliant_tag)
impl("interop_test::largest", "CompositeExplicit", largest)
register_autograd("interop_test::largest", largest_backward, largest_setup)


# Operators called from here.

def call_scaled_mm(torch.Tensor a not None, torch.Tensor b not None, s):
    cdef at.Tensor result, x = a.cdata, y = b.cdata
    cdef Operator[at.Tensor] op = Operator[at.Tensor](b"interop_test::scaled_mm")
    cdef double factor = s
    with nogil:
        result = op.call(x, y, factor)
    return torch.wrap(result)


def call_pair(torch.Tensor x not None):
    cdef Operator[tuple2[at.Tensor, at.Tensor]] op = Operator[tuple2[at.Tensor, at.Tensor]](b"interop_test::pair")
    cdef tuple2[at.Tensor, at.Tensor] both = op.call(x.cdata)
    return torch.wrap(get0(both)), torch.wrap(get1(both))


def call_defaults():
    cdef Operator[string] op = Operator[string](b"interop_test::text")
    cdef string text = b"wow"  # of a literal in the call, Cython before 3.3 deduces a Python object
    return op.call(text).decode()


def call_wrongly(torch.Tensor x not None, how):
    cdef at.Tensor undefined
    cdef Operator[at.Tensor] scaled = Operator[at.Tensor](b"interop_test::scaled_mm")
    if how == "missing":
        scaled.call(x.cdata)
    elif how == "too many":
        scaled.call(x.cdata, x.cdata, 1.0, 2.0)
    elif how == "type":
        scaled.call(x.cdata, x.cdata, x.cdata)
    elif how == "undefined":
        scaled.call(undefined, x.cdata, 1.0)
    elif how == "results":
        Operator[at.Tensor](b"interop_test::pair").call(x.cdata)
    elif how == "result type":
        Operator[double](b"interop_test::scaled_mm").call(x.cdata, x.cdata, 1.0)
    elif how == "overload":
        Operator[at.Tensor](b"interop_test::scaled").call(x.cdata, 1.0)
    elif how == "name":
        Operator[at.Tensor](b"interop_test::nothing").call(x.cdata)


# An argument that is a list of numbers, results that may be missing, and a result that is kept for backward.

cdef at.Tensor total_of(const at.Tensor& x, at.IntArrayRef dims, bint keepdim) except * nogil:
    return at.sum(x, dims, keepdim)


cdef void total_of_setup(
        Context& ctx, const at.Tensor& x, at.IntArrayRef dims, bint keepdim, const at.Tensor& y) except * nogil:
    cdef vector[int64_t]* kept = ctx.state[vector[int64_t]]()
    cdef int64_t i
    kept[0].clear()
    for i in range(<int64_t> dims.size()):
        kept[0].push_back(dims[i])
    ctx.save_for_backward(x)


cdef (at.Tensor, at.Tensor, at.Tensor) total_of_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef at.Tensor x = ctx.saved_tensor(0), none
    return at.mul(at.ones_like(x), grad), none, none


define("interop_test::total_of", "(Tensor x, int[] dims, bool keepdim) -> Tensor")
impl("interop_test::total_of", "CompositeExplicit", total_of)
register_autograd("interop_test::total_of", total_of_backward, total_of_setup)


cdef tuple2[optional[at.Tensor], at.Tensor] maybe(const at.Tensor& x, bint both) except * nogil:
    cdef optional[at.Tensor] first
    if both:
        first = optional[at.Tensor](at.mul(x, 10))
    return make_pair(first, at.mul(x, 2))


cdef (at.Tensor, at.Tensor) maybe_backward(Context& ctx, const at.Tensor& g, const at.Tensor& h) except * nogil:
    cdef at.Tensor dx = at.mul(h, 2), none
    if g.defined():
        dx = at.add(dx, at.mul(g, 10))
    return dx, none


cdef extern from *:
    """
    static std::tuple<std::optional<at::Tensor>, at::Tensor> make_pair(
        const std::optional<at::Tensor>& a, const at::Tensor& b) {
      return {a, b};
    }
    """
    tuple2[optional[at.Tensor], at.Tensor] make_pair(const optional[at.Tensor]& a, const at.Tensor& b) nogil


define("interop_test::maybe", "(Tensor x, bool both) -> (Tensor?, Tensor)")
impl("interop_test::maybe", "CompositeExplicit", maybe)
register_autograd("interop_test::maybe", maybe_backward)


cdef at.Tensor exponential(const at.Tensor& x) except * nogil:
    return at.exp(x)


cdef void exponential_setup(Context& ctx, const at.Tensor& x, const at.Tensor& y) except * nogil:
    ctx.save_for_backward(y)


cdef at.Tensor exponential_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    return at.mul(grad, ctx.saved_tensor(0))


define(
    "interop_test::exponential", "(Tensor x) -> Tensor",
    Tag.pt2_compliant_tag, Tag.pointwise, Tag.needs_fixed_stride_order)
impl("interop_test::exponential", "CompositeExplicit", exponential)
register_autograd("interop_test::exponential", exponential_backward, exponential_setup)


# Of a tuple, and an argument that is a bint for the dispatcher's bool.

define("interop_test::flagged", "(Tensor x, bool flag, float? scale=None) -> (Tensor, bool)")


cdef (at.Tensor, bint) flagged_or_not(const at.Tensor& x, bint flag, optional[double] scale) except * nogil:
    return at.mul(x, scale.value() if scale.has_value() else 1.0), not flag


impl("interop_test::flagged", "CompositeExplicit", flagged_or_not)


def call_flagged(torch.Tensor x not None, bint flag):
    cdef Operator[tuple2[at.Tensor, cbool]] op = Operator[tuple2[at.Tensor, cbool]](b"interop_test::flagged")
    cdef tuple2[at.Tensor, cbool] both = op.call(x.cdata, flag, 2)
    return torch.wrap(get0(both)), get1(both)


# Results that are undefined, taken from here.

cdef (at.Tensor, at.Tensor) half_undefined(const at.Tensor& x) except * nogil:
    cdef at.Tensor none
    return at.mul(x, 2), none


define("interop_test::half_undefined", "(Tensor x) -> (Tensor, Tensor)")
impl("interop_test::half_undefined", "CompositeExplicit", half_undefined)


def call_half_undefined(torch.Tensor x not None):
    cdef Operator[tuple2[at.Tensor, at.Tensor]] op
    op = Operator[tuple2[at.Tensor, at.Tensor]](b"interop_test::half_undefined")
    cdef tuple2[at.Tensor, at.Tensor] both = op.call(x.cdata)
    return torch.wrap(get0(both)), torch.wrap(get1(both))
