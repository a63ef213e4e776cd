# cython: cdivision=True
# x + y, and x y + x / (1 + y y), of tensors: out of one scalar function each, and with loops written by hand.
cimport ATen as at
cimport torch
from libc.stdint cimport int64_t


cdef inline at.floating _add(at.floating x, at.floating y) noexcept nogil:
    return x + y


# A plain 1 in a division is a double in the C++ that Cython writes, and then the whole division is one of doubles.
cdef inline at.floating _fused(at.floating x, at.floating y) noexcept nogil:
    return x * y + x / (<at.floating> 1 + y * y)


def add(torch.Tensor x not None, torch.Tensor y not None):
    cdef at.Tensor a = x.cdata, b = y.cdata, z
    with nogil:
        z = at.elementwise(b"add", at.kernel(_add[float], _add[double]), a, b)
    return torch.wrap(z)


def fused(torch.Tensor x not None, torch.Tensor y not None):
    cdef at.Tensor a = x.cdata, b = y.cdata, z
    with nogil:
        z = at.elementwise(b"fused", at.kernel(_fused[float], _fused[double]), a, b)
    return torch.wrap(z)


# By hand: float32, contiguous, of one shape.

cdef struct Arrays:
    const float* x
    const float* y
    float* z


cdef void _add_part(int64_t begin, int64_t end, void* data) noexcept nogil:
    cdef Arrays a = (<Arrays*> data)[0]
    cdef int64_t i
    for i in range(begin, end):
        a.z[i] = a.x[i] + a.y[i]


cdef void _fused_part(int64_t begin, int64_t end, void* data) noexcept nogil:
    cdef Arrays a = (<Arrays*> data)[0]
    cdef int64_t i
    for i in range(begin, end):
        a.z[i] = a.x[i] * a.y[i] + a.x[i] / (<float> 1 + a.y[i] * a.y[i])


cdef at.Tensor _by_hand(const at.Tensor& x, const at.Tensor& y, bint fused) except *:
    cdef at.const_accessor1[float] a = at.const_accessor1[float](x, b"x"), b = at.const_accessor1[float](y, b"y")
    cdef at.Tensor z = at.empty(x.sizes(), x.options())
    cdef Arrays arrays
    if not (x.is_contiguous() and y.is_contiguous() and a.size(0) == b.size(0)):
        raise ValueError("x and y must be contiguous and of one size")
    arrays.x, arrays.y, arrays.z = x.const_data_ptr[float](), y.const_data_ptr[float](), z.data_ptr[float]()
    with nogil:
        at.parallel_for(0, z.numel(), 32768, _fused_part if fused else _add_part, &arrays)
    return z


def add_by_hand(torch.Tensor x not None, torch.Tensor y not None):
    return torch.wrap(_by_hand(x.cdata, y.cdata, False))


def fused_by_hand(torch.Tensor x not None, torch.Tensor y not None):
    return torch.wrap(_by_hand(x.cdata, y.cdata, True))
