# Operations on tensors out of scalar functions.
cimport ATen as at
cimport cython
cimport torch
from interop cimport all_types, elementwise, elementwise_out, floating, kernel, reduce, scalar, unbroadcast
from libc.math cimport INFINITY, exp
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from torch.autograd cimport Context, Function
from torch.library cimport define, impl, register_autograd


class Told(Exception):
    pass


ctypedef fused element:
    all_types
    float complex
    double complex


# 2 a + b for every type.

cdef inline element _combine(element a, element b) noexcept nogil:
    return 2 * a + b


cdef at.Tensor combine(const at.Tensor& a, const at.Tensor& b) except * nogil:
    return elementwise(
        b"combine",
        kernel(
            _combine[float], _combine[double], _combine[int8_t], _combine[int16_t], _combine[int32_t],
            _combine[int64_t], _combine[uint8_t], _combine[floatcomplex], _combine[doublecomplex]),
        a, b)


define("interop_kernels::combine", "(Tensor a, Tensor b) -> Tensor")
impl("interop_kernels::combine", "CPU", combine)
impl("interop_kernels::combine", "Meta", combine)


def binary(torch.Tensor a not None, torch.Tensor b not None):
    return torch.wrap(combine(a.cdata, b.cdata))


def binary_out(torch.Tensor a not None, torch.Tensor b not None, torch.Tensor out):
    cdef at.Tensor result
    if out is not None:
        result = out.cdata
    return torch.wrap(
        elementwise_out(
            b"combine", result,
            kernel(_combine[float], _combine[double], _combine[int64_t], _combine[uint8_t], _combine[floatcomplex]),
            a.cdata, b.cdata))


def with_number(torch.Tensor a not None, number):
    """2 a + number, as C has the number."""
    cdef at.Tensor t = a.cdata, result
    cdef double d
    cdef long i
    if isinstance(number, float):
        d = number
        with nogil:
            result = elementwise(
                b"combine", kernel(_combine[float], _combine[double], _combine[int32_t], _combine[int64_t]), t, d)
    else:
        i = number
        with nogil:
            result = elementwise(
                b"combine", kernel(_combine[float], _combine[double], _combine[int32_t], _combine[int64_t]), t, i)
    return torch.wrap(result)


def with_scalar(torch.Tensor a not None, number):
    return torch.wrap(
        elementwise(
            b"combine", kernel(_combine[float], _combine[double], _combine[floatcomplex]), scalar(number),
            a.cdata))


# A float operation, its derivatives, and how both are used.

cdef inline floating _swish(floating x, floating beta) noexcept nogil:
    return x / (1 + exp(-beta * x))


cdef inline floating _swish_x(floating grad, floating x, floating beta) noexcept nogil:
    cdef floating s = 1 / (1 + exp(-beta * x))
    return grad * (s + beta * x * s * (1 - s))


cdef inline floating _swish_beta(floating grad, floating x, floating beta) noexcept nogil:
    cdef floating s = 1 / (1 + exp(-beta * x))
    return grad * x * x * s * (1 - s)


cdef at.Tensor swish(const at.Tensor& x, const at.Tensor& beta) except * nogil:
    return elementwise(b"swish", kernel(_swish[float], _swish[double]), x, beta)


def swish_forward(torch.Tensor x not None, torch.Tensor beta not None):
    return torch.wrap(swish(x.cdata, beta.cdata))


def swish_backward(torch.Tensor grad not None, torch.Tensor x not None, torch.Tensor beta not None):
    cdef at.Tensor g = grad.cdata, a = x.cdata, b = beta.cdata, of_x, of_beta
    with nogil:
        of_x = elementwise(b"swish_backward", kernel(_swish_x[float], _swish_x[double]), g, a, b)
        of_x = unbroadcast(of_x, a)
        of_beta = elementwise(b"swish_backward", kernel(_swish_beta[float], _swish_beta[double]), g, a, b)
        of_beta = unbroadcast(of_beta, b)
    return torch.wrap(of_x), torch.wrap(of_beta)


# Where autograd records, a loop is an error.

cdef inline floating _cubed(floating x) noexcept nogil:
    return x * x * x


cdef inline floating _by_cubed(floating grad, floating x) noexcept nogil:
    return grad * 3 * x * x


cdef at.Tensor cubed_(const at.Tensor& x) except * nogil:
    return elementwise(b"cubed", kernel(_cubed[float], _cubed[double]), x)


cdef at.Tensor cubed_forward(Context& ctx, const at.Tensor& x) except * nogil:
    ctx.save_for_backward(x)
    return cubed_(x)


cdef void cubed_setup(Context& ctx, const at.Tensor& x, const at.Tensor& y) except * nogil:
    ctx.save_for_backward(x)


cdef at.Tensor cubed_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    return elementwise(
        b"cubed_backward", kernel(_by_cubed[float], _by_cubed[double]), grad, ctx.saved_tensor(0))


cdef Function[at.Tensor] cubed_function
cubed_function.define("Cubed", cubed_forward, cubed_backward)
define("interop_kernels::cubed", "(Tensor x) -> Tensor")
impl("interop_kernels::cubed", "CPU", cubed_)
register_autograd("interop_kernels::cubed", cubed_backward, cubed_setup)


def cubed(torch.Tensor x not None):
    return torch.wrap(cubed_function.apply(x.cdata))


cdef inline float _squared(float x) noexcept nogil:
    return x * x


cdef at.Tensor squared(const at.Tensor& x) except * nogil:
    return elementwise(b"squared", kernel(_squared), x)


cdef struct Parts:
    const at.Tensor* x
    at.Tensor* y


cdef void _square_rows(int64_t begin, int64_t end, void* data) except * nogil:
    cdef Parts* parts = <Parts*> data
    cdef at.Tensor row = elementwise(b"squared", kernel(_squared), parts.x.narrow(0, begin, end - begin))
    parts.y.narrow(0, begin, end - begin).copy_(row)


cdef at.Tensor squared_parts(const at.Tensor& x) except * nogil:
    cdef at.Tensor y = at.empty(x.sizes())
    cdef Parts parts
    parts.x, parts.y = &x, &y
    at.parallel_for(0, x.size(0), 1, _square_rows, &parts)
    return y


define("interop_kernels::squared", "(Tensor x) -> Tensor")
impl("interop_kernels::squared", "CPU", squared)
define("interop_kernels::squared_explicit", "(Tensor x) -> Tensor")
impl("interop_kernels::squared_explicit", "CompositeExplicitAutograd", squared)
define("interop_kernels::squared_implicit", "(Tensor x) -> Tensor")
impl("interop_kernels::squared_implicit", "CompositeImplicitAutograd", squared)
define("interop_kernels::squared_in_parts", "(Tensor x) -> Tensor")
impl("interop_kernels::squared_in_parts", "CPU", squared_parts)


def squared_in_parts(torch.Tensor x not None):
    return torch.wrap(squared_parts(x.cdata))


# Truth values: made of numbers, and of themselves.

cdef inline cbool _close(all_types a, all_types b) noexcept nogil:
    return a - b < 1 and b - a < 1


def close(torch.Tensor a not None, torch.Tensor b not None, torch.Tensor out=None):
    if out is None:
        return torch.wrap(elementwise(
            b"close", kernel(_close[float], _close[double], _close[int64_t]), a.cdata, b.cdata))
    return torch.wrap(elementwise_out(
        b"close", out.cdata, kernel(_close[float], _close[double], _close[int64_t]), a.cdata, b.cdata))


cdef at.Tensor _close_of(const at.Tensor& a, const at.Tensor& b) except * nogil:
    return elementwise(b"close", kernel(_close[float], _close[double], _close[int64_t]), a, b)


define("interop_kernels::close", "(Tensor a, Tensor b) -> Tensor")
impl("interop_kernels::close", "CPU", _close_of)
impl("interop_kernels::close", "Meta", _close_of)


cdef inline cbool _alike(cbool a, cbool b) noexcept nogil:
    return a == b


def alike(torch.Tensor a not None, torch.Tensor b not None):
    return torch.wrap(elementwise(b"alike", kernel(_alike), a.cdata, b.cdata))


# Division as Cython has it, and as C has it.

cdef inline double _inverse(double x) noexcept nogil:
    return 1 / x


@cython.cdivision(True)
cdef inline double _inverse_of_c(double x) noexcept nogil:
    return 1 / x


def inverse(torch.Tensor x not None, bint of_c):
    if of_c:
        return torch.wrap(elementwise(b"inverse", kernel(_inverse_of_c), x.cdata))
    return torch.wrap(elementwise(b"inverse", kernel(_inverse), x.cdata))


# One argument; one type only.

cdef inline double _recurrence(double x) noexcept nogil:
    cdef int _i
    for _i in range(3):
        x = x * x - 0.5
    return x


def recurrence(torch.Tensor x not None):
    return torch.wrap(elementwise(b"recurrence", kernel(_recurrence), x.cdata))


# Errors of the function.

cdef inline float _checked(float x) noexcept nogil:
    if x < 0:
        with gil:
            raise Told("negative", x)
    return x


def checked(torch.Tensor x not None):
    cdef at.Tensor t = x.cdata, result
    with nogil:
        result = elementwise(b"checked", kernel(_checked), t)
    return torch.wrap(result)


objects = [1, None]


cdef inline float _with_gil(float x) noexcept with gil:
    objects[1] = x
    return x + objects[0]


def with_gil(torch.Tensor x not None):
    """A function that uses Python, on torch's threads."""
    return torch.wrap(elementwise(b"with_gil", kernel(_with_gil), x.cdata))


# Reductions.

cdef inline all_types _larger(all_types total, all_types value) noexcept nogil:
    return value if value > total else total


def largest(torch.Tensor x not None, dim=None, keepdim=None):
    cdef at.Tensor t = x.cdata, result
    cdef at.Scalar lowest = scalar(-INFINITY) if at.isFloatingType(t.scalar_type()) else scalar(-2**62)
    if dim is None:
        result = reduce(b"largest", kernel(_larger[float], _larger[double], _larger[int64_t]), t, lowest)
    elif keepdim is None:
        result = reduce(
            b"largest", kernel(_larger[float], _larger[double], _larger[int64_t]), t, lowest, dim)
    else:
        result = reduce(
            b"largest", kernel(_larger[float], _larger[double], _larger[int64_t]), t, lowest, <int> dim, keepdim)
    return torch.wrap(result)


cdef inline element _plus(element total, element value) noexcept nogil:
    return total + value


def total(torch.Tensor x not None, dims, bint keepdim):
    cdef at.Tensor result = reduce(
        b"total",
        kernel(
            _plus[float], _plus[double], _plus[int32_t], _plus[int64_t], _plus[floatcomplex], _plus[doublecomplex]),
        x.cdata, 0, dims, keepdim)
    return torch.wrap(result)


cdef at.Tensor _total_of(const at.Tensor& x, at.IntArrayRef dims, bint keepdim) except * nogil:
    return reduce(b"total", kernel(_plus[float], _plus[double]), x, 0, dims, keepdim)


define("interop_kernels::total", "(Tensor x, int[] dims, bool keepdim) -> Tensor")
impl("interop_kernels::total", "CPU", _total_of)
impl("interop_kernels::total", "Meta", _total_of)


cdef inline float _raising(float total, float value) noexcept nogil:
    if value < 0:
        with gil:
            raise Told("negative", value)
    return total + value


def raising_total(torch.Tensor x not None):
    return torch.wrap(reduce(b"raising", kernel(_raising), x.cdata, 0.0))


def total_of_both(torch.Tensor x not None):
    """Over the first and the last dimension."""
    cdef at.Tensor t = x.cdata, result
    with nogil:
        result = reduce(b"total", kernel(_plus[float]), t, 0, (0, -1))
    return torch.wrap(result)
