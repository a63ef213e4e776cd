"""The CUDA kernel of your_project::softclip."""

cimport ATen as at
from interop.cuda cimport Elementwise, Launch
from torch.library cimport impl

cdef extern from "softclip.h" nogil:
    int softclip_kernel(const Elementwise& arguments, double limit, void* stream) noexcept


cdef at.Tensor softclip_cuda(const at.Tensor& x, double limit) except * nogil:
    cdef Elementwise e = Elementwise(x)
    cdef Launch launch = Launch(e.output())
    launch.check(softclip_kernel(e, limit, launch.stream()), b"softclip")
    return e.output()


impl("your_project::softclip", "CUDA", softclip_cuda)
