# Operations on tensors out of scalar functions.
cimport ATen as at
cimport cython
cimport torch
from libc.math cimport INFINITY, exp
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool


class Told(Exception):
    pass


ctypedef fused element:
    at.all_types
    float complex
    double complex


# 2 a + b for every type.

cdef inline element _combine(element a, element b) noexcept nogil:
    return 2 * a + b


cdef at.Tensor combine(const at.Tensor& a, const at.Tensor& b) except * nogil:
    return at.elementwise(
        b"combine",
        at.kernel(
            _combine[float], _combine[double], _combine[int8_t], _combine[int16_t], _combine[int32_t],
            _combine[int64_t], _combine[uint8_t], _combine[floatcomplex], _combine[doublecomplex]),
        a, b)


def binary(torch.Tensor a not None, torch.Tensor b not None):
    return torch.wrap(combine(a.cdata, b.cdata))


def binary_out(torch.Tensor a not None, torch.Tensor b not None, torch.Tensor out):
    cdef at.Tensor result
    if out is not None:
        result = out.cdata
    return torch.wrap(
        at.elementwise_out(
            b"combine", result,
            at.kernel(_combine[float], _combine[double], _combine[int64_t], _combine[uint8_t], _combine[floatcomplex]),
            a.cdata, b.cdata))


def with_number(torch.Tensor a not None, number):
    """2 a + number, as C has the number."""
    cdef at.Tensor t = a.cdata, result
    cdef double d
    cdef long i
    if isinstance(number, float):
        d = number
        with nogil:
            result = at.elementwise(
                b"combine", at.kernel(_combine[float], _combine[double], _combine[int32_t], _combine[int64_t]), t, d)
    else:
        i = number
        with nogil:
            result = at.elementwise(
                b"combine", at.kernel(_combine[float], _combine[double], _combine[int32_t], _combine[int64_t]), t, i)
    return torch.wrap(result)


def with_scalar(torch.Tensor a not None, number):
    return torch.wrap(
        at.elementwise(
            b"combine", at.kernel(_combine[float], _combine[double], _combine[floatcomplex]), at.scalar(number),
            a.cdata))


# A float operation, its derivatives, and how both are used.

cdef inline at.floating _swish(at.floating x, at.floating beta) noexcept nogil:
    return x / (1 + exp(-beta * x))


cdef inline at.floating _swish_x(at.floating grad, at.floating x, at.floating beta) noexcept nogil:
    cdef at.floating s = 1 / (1 + exp(-beta * x))
    return grad * (s + beta * x * s * (1 - s))


cdef inline at.floating _swish_beta(at.floating grad, at.floating x, at.floating beta) noexcept nogil:
    cdef at.floating s = 1 / (1 + exp(-beta * x))
    return grad * x * x * s * (1 - s)


cdef at.Tensor swish(const at.Tensor& x, const at.Tensor& beta) except * nogil:
    return at.elementwise(b"swish", at.kernel(_swish[float], _swish[double]), x, beta)


def swish_forward(torch.Tensor x not None, torch.Tensor beta not None):
    return torch.wrap(swish(x.cdata, beta.cdata))


def swish_backward(torch.Tensor grad not None, torch.Tensor x not None, torch.Tensor beta not None):
    cdef at.Tensor g = grad.cdata, a = x.cdata, b = beta.cdata, of_x, of_beta
    with nogil:
        of_x = at.elementwise(b"swish_backward", at.kernel(_swish_x[float], _swish_x[double]), g, a, b)
        of_x = at.unbroadcast(of_x, a)
        of_beta = at.elementwise(b"swish_backward", at.kernel(_swish_beta[float], _swish_beta[double]), g, a, b)
        of_beta = at.unbroadcast(of_beta, b)
    return torch.wrap(of_x), torch.wrap(of_beta)


# Truth values: made of numbers, and of themselves.

cdef inline cbool _close(at.all_types a, at.all_types b) noexcept nogil:
    return a - b < 1 and b - a < 1


def close(torch.Tensor a not None, torch.Tensor b not None, torch.Tensor out=None):
    if out is None:
        return torch.wrap(at.elementwise(
            b"close", at.kernel(_close[float], _close[double], _close[int64_t]), a.cdata, b.cdata))
    return torch.wrap(at.elementwise_out(
        b"close", out.cdata, at.kernel(_close[float], _close[double], _close[int64_t]), a.cdata, b.cdata))


cdef inline cbool _alike(cbool a, cbool b) noexcept nogil:
    return a == b


def alike(torch.Tensor a not None, torch.Tensor b not None):
    return torch.wrap(at.elementwise(b"alike", at.kernel(_alike), a.cdata, b.cdata))


# Division as Cython has it, and as C has it.

cdef inline double _inverse(double x) noexcept nogil:
    return 1 / x


@cython.cdivision(True)
cdef inline double _inverse_of_c(double x) noexcept nogil:
    return 1 / x


def inverse(torch.Tensor x not None, bint of_c):
    if of_c:
        return torch.wrap(at.elementwise(b"inverse", at.kernel(_inverse_of_c), x.cdata))
    return torch.wrap(at.elementwise(b"inverse", at.kernel(_inverse), x.cdata))


# One argument; one type only.

cdef inline double _recurrence(double x) noexcept nogil:
    cdef int _i
    for _i in range(3):
        x = x * x - 0.5
    return x


def recurrence(torch.Tensor x not None):
    return torch.wrap(at.elementwise(b"recurrence", at.kernel(_recurrence), x.cdata))


# Errors of the function.

cdef inline float _checked(float x) noexcept nogil:
    if x < 0:
        with gil:
            raise Told("negative", x)
    return x


def checked(torch.Tensor x not None):
    cdef at.Tensor t = x.cdata, result
    with nogil:
        result = at.elementwise(b"checked", at.kernel(_checked), t)
    return torch.wrap(result)


objects = [1]


cdef inline float _with_gil(float x) noexcept with gil:
    objects.append(x)
    return x + objects[0]


def with_gil(torch.Tensor x not None):
    """A function that uses Python, on torch's threads."""
    return torch.wrap(at.elementwise(b"with_gil", at.kernel(_with_gil), x.cdata))


# Reductions.

cdef inline at.all_types _larger(at.all_types total, at.all_types value) noexcept nogil:
    return value if value > total else total


def largest(torch.Tensor x not None, dim=None, keepdim=None):
    cdef at.Tensor t = x.cdata, result
    cdef at.Scalar lowest = at.scalar(-INFINITY) if at.isFloatingType(t.scalar_type()) else at.scalar(-2**62)
    if dim is None:
        result = at.reduce(b"largest", at.kernel(_larger[float], _larger[double], _larger[int64_t]), t, lowest)
    elif keepdim is None:
        result = at.reduce(
            b"largest", at.kernel(_larger[float], _larger[double], _larger[int64_t]), t, lowest, dim)
    else:
        result = at.reduce(
            b"largest", at.kernel(_larger[float], _larger[double], _larger[int64_t]), t, lowest, <int> dim, keepdim)
    return torch.wrap(result)


cdef inline element _plus(element total, element value) noexcept nogil:
    return total + value


def total(torch.Tensor x not None, dims, bint keepdim):
    cdef at.Tensor result = at.reduce(
        b"total",
        at.kernel(
            _plus[float], _plus[double], _plus[int32_t], _plus[int64_t], _plus[floatcomplex], _plus[doublecomplex]),
        x.cdata, 0, dims, keepdim)
    return torch.wrap(result)


cdef inline float _raising(float total, float value) noexcept nogil:
    if value < 0:
        with gil:
            raise Told("negative", value)
    return total + value


def raising_total(torch.Tensor x not None):
    return torch.wrap(at.reduce(b"raising", at.kernel(_raising), x.cdata, 0.0))


def total_of_both(torch.Tensor x not None):
    """Over the first and the last dimension."""
    cdef at.Tensor t = x.cdata, result
    with nogil:
        result = at.reduce(b"total", at.kernel(_plus[float]), t, 0, (0, -1))
    return torch.wrap(result)
