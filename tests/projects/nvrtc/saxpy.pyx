# distutils: language = c++
cimport ATen as at
cimport torch
from interop.cuda cimport Kernel
from libc.stdint cimport int64_t


cdef class Saxpy:
    """y += a * x, in the dtype of the kernel that it is made of."""

    cdef Kernel kernel

    def __init__(self, handle):
        self.kernel = Kernel(handle)  # loads the code, and keeps it

    cdef int run(self, const at.Tensor& y, const at.Tensor& x, float a) except -1 nogil:
        cdef int64_t n = y.numel()
        if x.numel() != n or not x.is_contiguous() or not y.is_contiguous():
            raise ValueError("x and y must be contiguous and of the same size")
        self.kernel.launch((n + 255) // 256, 256)(y, x, a, n)
        return 0

    def __call__(self, torch.Tensor y not None, torch.Tensor x not None, float a):
        with nogil:
            self.run(y.cdata, x.cdata, a)
