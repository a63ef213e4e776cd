# Reads fields by mirrors of the structs. A typed argument is checked; the read is an address with an offset.
from libc.stdint cimport uint64_t, uintptr_t

cimport ATen as at
cimport torch

cdef extern from "mirrors.h":
    ctypedef class numpy.dtype [object mirror_Dtype, check_size ignore]:
        cdef int number
        cdef uint64_t flags
        cdef Py_ssize_t itemsize

    ctypedef class __builtin__.complex [object mirror_Complex, check_size ignore]:
        cdef double real
        cdef double imag


def read_tensor(torch.Tensor x not None):
    return x.cdata.numel()


def read_dtype(dtype x not None):
    return x.itemsize


def read_complex(complex x not None):
    return x.real


def identity(torch.Tensor x not None):
    """Where the at::Tensor lies, and what it points to: its only field is that pointer."""
    cdef const at.Tensor* field = &x.cdata
    return <uintptr_t> field, (<uintptr_t*> field)[0]
