# Functions and operators with a forward-mode derivative.
cimport ATen as at
cimport torch
from interop cimport elementwise, get0, get1, kernel, reduce, tuple2
from libc.stdint cimport int64_t
from libcpp.optional cimport optional
from libcpp.vector cimport vector
from torch.autograd cimport Context, Function
from torch.library cimport Operator, Tag, define, impl, register_autograd

seen = []  # what jvp functions below were given


# The result is kept. forward reads memory, so it must never be called with the tensors of a transform. The cube of x:

cdef at.Tensor cube_forward(Context& ctx, const at.Tensor& x) except * nogil:
    cdef at.Tensor y = at.empty_like(x)
    cdef const double* source = x.const_data_ptr[double]()
    cdef double* target = y.mutable_data_ptr[double]()
    cdef int64_t i
    for i in range(x.numel()):
        target[i] = source[i] * source[i] * source[i]
    ctx.save_for_backward(x, y)
    return y


cdef at.Tensor cube_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    return at.mul(grad, at.mul(at.pow(ctx.saved_tensor(0), 2), 3))


cdef at.Tensor cube_jvp(Context& ctx, const at.Tensor& tangent) except * nogil:
    return at.mul(tangent, at.mul(at.pow(ctx.saved_tensor(0), 2), 3))


cdef Function[at.Tensor] cube_function, cube_without_jvp
cube_function.define("Cube", cube_forward, cube_backward, cube_jvp)
cube_without_jvp.define("CubeWithoutJvp", cube_forward, cube_backward)


def cube(torch.Tensor x not None):
    cdef at.Tensor a = x.cdata, y
    with nogil:
        y = cube_function.apply(a)
    return torch.wrap(y)


def without_jvp(torch.Tensor x not None):
    return torch.wrap(cube_without_jvp.apply(x.cdata))


# Made of operators, so that vmap may call forward with tensors of its own. It keeps one tensor that is neither input
# nor output, numbers, and other tensors for jvp than for backward. p * x ** 2 * y, and the sign of x.

cdef (at.Tensor, at.Tensor) square_forward(
        Context& ctx, const at.Tensor& x, double p, const at.Tensor& y) except * nogil:
    cdef at.Tensor two = at.full_like(x, 2), sign = at.sign(x)
    ctx.state[double]()[0] = p
    ctx.save_for_backward(two, y, x)
    ctx.save_for_forward(x, y)
    ctx.mark_non_differentiable(sign)
    return at.mul(at.mul(at.mul(x, x), p), y), sign


cdef (at.Tensor, at.Tensor, at.Tensor) square_backward(
        Context& ctx, const at.Tensor& grad, const at.Tensor& _) except * nogil:
    cdef at.Tensor x = ctx.saved_tensor(2), y = ctx.saved_tensor(1), dx, dy
    cdef double p = ctx.state[double]()[0]
    if ctx.needs_input_grad(0):
        dx = at.mul(at.mul(at.mul(ctx.saved_tensor(0), x), p), at.mul(grad, y))
    if ctx.needs_input_grad(2):
        dy = at.mul(at.mul(at.mul(x, x), p), grad)
    return dx, at.Tensor(), dy


cdef (at.Tensor, at.Tensor) square_jvp(
        Context& ctx, const at.Tensor& dx, const at.Tensor& dp, const at.Tensor& dy) except * nogil:
    cdef at.Tensor x = ctx.saved_tensor(0), y = ctx.saved_tensor(1)
    cdef double p = ctx.state[double]()[0]
    cdef size_t kept = ctx.saved_tensors()
    with gil:
        seen.append((dx.defined(), dp.defined(), dy.defined(), kept))
    return at.mul(at.add(at.mul(at.mul(at.mul(x, 2), y), dx), at.mul(at.mul(x, x), dy)), p), at.Tensor()


cdef Function[tuple2[at.Tensor, at.Tensor]] square_function
square_function.define("Square", square_forward, square_backward, square_jvp)


def square(torch.Tensor x not None, double p, torch.Tensor y not None):
    cdef tuple2[at.Tensor, at.Tensor] both = square_function.apply(x.cdata, p, y.cdata)
    return torch.wrap(get0(both)), torch.wrap(get1(both))


# Lists, and a tensor that may be missing: its tangent is not materialized.

cdef vector[at.Tensor] shifted_forward(
        Context& ctx, const vector[at.Tensor]& xs, const optional[at.Tensor]& shift) except * nogil:
    cdef vector[at.Tensor] result
    cdef size_t i
    ctx.set_materialize_grads(False)
    for i in range(xs.size()):
        result.push_back(at.add(xs[i], shift.value()) if shift.has_value() else at.mul(xs[i], 1))
    return result


cdef vector[at.Tensor] shifted_backward(Context& ctx, const vector[at.Tensor]& grads) except * nogil:
    cdef vector[at.Tensor] result = grads
    cdef at.Tensor total
    cdef size_t i
    for i in range(grads.size()):
        if grads[i].defined():
            total = at.add(total, grads[i]) if total.defined() else grads[i]
    result.push_back(total)
    return result


cdef vector[at.Tensor] shifted_jvp(Context& ctx, const vector[at.Tensor]& tangents) except * nogil:
    cdef vector[at.Tensor] result
    cdef at.Tensor shift = tangents[tangents.size() - 1], one
    cdef size_t i
    for i in range(tangents.size() - 1):
        one = tangents[i]
        if one.defined() and shift.defined():
            one = at.add(one, shift)
        result.push_back(one if one.defined() else shift)
    with gil:
        seen.append([tangents[i].defined() for i in range(tangents.size())])
    return result


cdef Function[vector[at.Tensor]] shifted_function
shifted_function.define("Shifted", shifted_forward, shifted_backward, shifted_jvp)


def shifted(list xs, shift):
    cdef vector[at.Tensor] tensors, result
    cdef optional[at.Tensor] maybe
    for x in xs:
        tensors.push_back(torch.unpack(x))
    if shift is not None:
        maybe = optional[at.Tensor](torch.unpack(shift))
    result = shifted_function.apply(tensors, maybe)
    return [torch.wrap(one) for one in result]


# Changes its input in place.

cdef at.Tensor triple_forward(Context& ctx, at.Tensor& x) except * nogil:
    x.mul_(3)
    ctx.mark_dirty(x)
    return x


cdef at.Tensor triple_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    return at.mul(grad, 3)


cdef at.Tensor triple_jvp(Context& ctx, const at.Tensor& tangent) except * nogil:
    cdef at.Tensor changed = tangent
    return changed.mul_(3)


cdef Function[at.Tensor] triple_function
triple_function.define("Triple", triple_forward, triple_backward, triple_jvp)


def triple_(torch.Tensor x not None):
    return torch.wrap(triple_function.apply(x.cdata))


# Raises in jvp.

cdef at.Tensor raising_forward(Context& ctx, const at.Tensor& x) except * nogil:
    return at.mul(x, 1)


cdef at.Tensor raising_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    return grad


cdef at.Tensor raising_jvp(Context& ctx, const at.Tensor& tangent) except * nogil:
    with gil:
        raise KeyError("a key")


cdef Function[at.Tensor] raising_function
raising_function.define("Raising", raising_forward, raising_backward, raising_jvp)


def raising(torch.Tensor x not None):
    return torch.wrap(raising_function.apply(x.cdata))


# An operator: s * sin(a) * b, with a kernel that reads memory.

cdef at.Tensor wave(const at.Tensor& a, const at.Tensor& b, double s) except * nogil:
    cdef const double* data = a.contiguous().const_data_ptr[double]()
    return at.mul(at.mul(at.sin(a), b), s) if data != NULL else at.Tensor()


cdef at.Tensor wave_meta(const at.Tensor& a, const at.Tensor& b, double s) except * nogil:
    return at.mul(a, b)


cdef void wave_setup(
        Context& ctx, const at.Tensor& a, const at.Tensor& b, double s, const at.Tensor& result) except * nogil:
    ctx.save_for_backward(a, b)
    ctx.state[double]()[0] = s


cdef (at.Tensor, at.Tensor, at.Tensor) wave_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef at.Tensor a = ctx.saved_tensor(0), b = ctx.saved_tensor(1), da, db
    cdef double s = ctx.state[double]()[0]
    if ctx.needs_input_grad(0):
        da = at.mul(at.mul(at.mul(at.cos(a), b), s), grad)
    if ctx.needs_input_grad(1):
        db = at.mul(at.mul(at.sin(a), s), grad)
    return da, db, at.Tensor()


cdef at.Tensor wave_jvp(
        Context& ctx, const at.Tensor& da, const at.Tensor& db, const at.Tensor& ds) except * nogil:
    cdef at.Tensor a = ctx.saved_tensor(0), b = ctx.saved_tensor(1)
    return at.mul(at.add(at.mul(at.mul(at.cos(a), b), da), at.mul(at.sin(a), db)), ctx.state[double]()[0])


define("interop_forward::wave", "(Tensor a, Tensor b, float s) -> Tensor", Tag.pt2_compliant_tag)
impl("interop_forward::wave", "CPU", wave)
impl("interop_forward::wave", "Meta", wave_meta)
register_autograd("interop_forward::wave", wave_backward, wave_setup, wave_jvp)


# Kernels of loops, which raise if a gradient would be lost, in operators that have one.

cdef double _cubed(double x) noexcept nogil:
    return x * x * x


cdef double _plus(double total, double x) noexcept nogil:
    return total + x * x * x


cdef at.Tensor loop_cube(const at.Tensor& x) except * nogil:
    return elementwise(b"cube", kernel(_cubed), x)


cdef at.Tensor reduced_cube(const at.Tensor& x) except * nogil:
    return reduce(b"cube", kernel(_plus), x, 0)


cdef at.Tensor iterated_cube(const at.Tensor& x) except * nogil:
    cdef at.TensorIterator _it = at.TensorIterator.unary_op(at.Tensor(), x)
    return at.mul(at.mul(x, x), x)


cdef at.Tensor cube_of_composite(const at.Tensor& x) except * nogil:
    return Operator[at.Tensor](b"interop_forward::composite_cube").call(x)


cdef void cube_setup(Context& ctx, const at.Tensor& x, const at.Tensor& result) except * nogil:
    ctx.save_for_backward(x)


cdef void looping_setup(Context& ctx, const at.Tensor& x, const at.Tensor& result) except * nogil:
    ctx.save_for_backward(elementwise(b"cube", kernel(_cubed), x))


cdef at.Tensor loop_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef at.Tensor x = ctx.saved_tensor(0)
    return at.mul(at.mul(at.mul(x, x), 3), grad)


cdef at.Tensor reduced_jvp(Context& ctx, const at.Tensor& tangent) except * nogil:
    return at.sum(loop_backward(ctx, tangent))


define("interop_forward::loop_cube", "(Tensor x) -> Tensor")
impl("interop_forward::loop_cube", "CPU", loop_cube)
register_autograd("interop_forward::loop_cube", loop_backward, cube_setup, loop_backward)
define("interop_forward::reduced_cube", "(Tensor x) -> Tensor")
impl("interop_forward::reduced_cube", "CPU", reduced_cube)
register_autograd("interop_forward::reduced_cube", loop_backward, cube_setup, reduced_jvp)
define("interop_forward::iterated_cube", "(Tensor x) -> Tensor")
impl("interop_forward::iterated_cube", "CPU", iterated_cube)
register_autograd("interop_forward::iterated_cube", loop_backward, cube_setup, loop_backward)
define("interop_forward::composite_cube", "(Tensor x) -> Tensor")
impl("interop_forward::composite_cube", "CompositeImplicitAutograd", loop_cube)
define("interop_forward::cube_of_composite", "(Tensor x) -> Tensor")
impl("interop_forward::cube_of_composite", "CPU", cube_of_composite)
register_autograd("interop_forward::cube_of_composite", loop_backward, cube_setup, loop_backward)
define("interop_forward::cube_of_looping_setup", "(Tensor x) -> Tensor")
impl("interop_forward::cube_of_looping_setup", "CPU", loop_cube)
register_autograd("interop_forward::cube_of_looping_setup", loop_backward, looping_setup)


# A rule for vmap, which is Python's: of a product with a batch, which is one product.

cdef at.Tensor product(const at.Tensor& a, const at.Tensor& b) except * nogil:
    return at.mm(a, b)


define("interop_forward::product", "(Tensor a, Tensor b) -> Tensor", Tag.pt2_compliant_tag)
impl("interop_forward::product", "CompositeExplicitAutograd", product)


def refused(str what):
    cdef Function[at.Tensor] new
    if what == "arguments":
        new.define("New", cube_forward, cube_backward, wave_jvp)
    elif what == "outputs":
        new.define("New", cube_forward, cube_backward, two_tangents)
    elif what == "operator":
        register_autograd("interop_forward::product", raising_backward_of_two, product_setup, cube_jvp)


cdef (at.Tensor, at.Tensor) two_tangents(Context& ctx, const at.Tensor& tangent) except * nogil:
    return tangent, tangent


cdef void product_setup(Context& ctx, const at.Tensor& a, const at.Tensor& b, const at.Tensor& c) except * nogil:
    pass


cdef (at.Tensor, at.Tensor) raising_backward_of_two(Context& ctx, const at.Tensor& grad) except * nogil:
    return grad, grad
