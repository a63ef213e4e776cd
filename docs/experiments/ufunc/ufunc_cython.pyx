# cython: cdivision=True
# x + y, and x y + x / (1 + y y), of tensors: out of one scalar function each, and with loops written by hand; into a
# result that is made, or that is there.
cimport ATen as at
cimport torch
from interop cimport accessor1, const_accessor1, elementwise, elementwise_out, floating, kernel
from libc.stdint cimport int64_t


cdef inline floating _add(floating x, floating y) noexcept nogil:
    return x + y


# A plain 1 in a division is a double in the C++ that Cython writes, and then the whole division is one of doubles.
cdef inline floating _fused(floating x, floating y) noexcept nogil:
    return x * y + x / (<floating> 1 + y * y)


def add(torch.Tensor x not None, torch.Tensor y not None):
    cdef at.Tensor a = x.cdata, b = y.cdata, z
    with nogil:
        z = elementwise(b"add", kernel(_add[float], _add[double]), a, b)
    return torch.wrap(z)


def add_into(torch.Tensor x not None, torch.Tensor y not None, torch.Tensor out not None):
    cdef at.Tensor a = x.cdata, b = y.cdata, z = out.cdata
    with nogil:
        elementwise_out(b"add", z, kernel(_add[float], _add[double]), a, b)


def fused(torch.Tensor x not None, torch.Tensor y not None):
    cdef at.Tensor a = x.cdata, b = y.cdata, z
    with nogil:
        z = elementwise(b"fused", kernel(_fused[float], _fused[double]), a, b)
    return torch.wrap(z)


def fused_into(torch.Tensor x not None, torch.Tensor y not None, torch.Tensor out not None):
    cdef at.Tensor a = x.cdata, b = y.cdata, z = out.cdata
    with nogil:
        elementwise_out(b"fused", z, kernel(_fused[float], _fused[double]), a, b)


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


cdef int _by_hand(const at.Tensor& x, const at.Tensor& y, const at.Tensor& z, bint fused) except -1:
    cdef const_accessor1[float] a = const_accessor1[float](x, b"x"), b = const_accessor1[float](y, b"y")
    cdef accessor1[float] c = accessor1[float](z, b"out")
    cdef Arrays arrays
    if not (x.is_contiguous() and y.is_contiguous() and z.is_contiguous() and a.size(0) == b.size(0) == c.size(0)):
        raise ValueError("x, y and out must be contiguous and of one size")
    arrays.x, arrays.y, arrays.z = x.const_data_ptr[float](), y.const_data_ptr[float](), z.data_ptr[float]()
    with nogil:
        at.parallel_for(0, z.numel(), 32768, _fused_part if fused else _add_part, &arrays)
    return 0


cdef _new_by_hand(torch.Tensor x, torch.Tensor y, bint fused):
    cdef at.Tensor z = at.empty(x.cdata.sizes(), x.cdata.options())
    _by_hand(x.cdata, y.cdata, z, fused)
    return torch.wrap(z)


def add_by_hand(torch.Tensor x not None, torch.Tensor y not None):
    return _new_by_hand(x, y, False)


def fused_by_hand(torch.Tensor x not None, torch.Tensor y not None):
    return _new_by_hand(x, y, True)


def add_by_hand_into(torch.Tensor x not None, torch.Tensor y not None, torch.Tensor out not None):
    _by_hand(x.cdata, y.cdata, out.cdata, False)


def fused_by_hand_into(torch.Tensor x not None, torch.Tensor y not None, torch.Tensor out not None):
    _by_hand(x.cdata, y.cdata, out.cdata, True)
