# Reads by functions: torch's C shim, NumPy's accessor, Python's API. No struct is known here but by those.
cimport numpy as cnp
from cpython.complex cimport PyComplex_RealAsDouble
from libc.stdint cimport int32_t, int64_t, uintptr_t

import torch

cdef extern from "handle.h":
    ctypedef void* AtenTensorHandle
    const char* UNPACK_C_FUNCTION
    int32_t aoti_torch_get_numel(AtenTensorHandle tensor, int64_t* result)
    int32_t aoti_torch_delete_tensor_object(AtenTensorHandle tensor)

cdef extern from "handle.h" namespace "unpack":
    AtenTensorHandle handle_of(object obj, object from_tensor) except NULL

cdef object FROM_TENSOR = torch._C._aoti.unsafe_alloc_void_ptr_from_tensor


def read_tensor(x):
    cdef AtenTensorHandle handle = handle_of(x, FROM_TENSOR)
    cdef int64_t result = 0
    cdef int32_t failed = aoti_torch_get_numel(handle, &result)
    failed |= aoti_torch_delete_tensor_object(handle)
    if failed:
        raise RuntimeError("torch's C shim failed, and has said why on stderr")
    return result


def read_dtype(cnp.dtype x not None):
    return cnp.PyDataType_ELSIZE(x)


def read_complex(x):
    if not isinstance(x, complex):  # PyComplex_RealAsDouble takes whatever has __complex__ or __float__
        raise TypeError(f"expected complex, got {type(x).__name__}")
    return PyComplex_RealAsDouble(x)


def identity(x):
    """Where the handle's at::Tensor lies, and what it points to: its only field is that pointer."""
    cdef AtenTensorHandle handle = handle_of(x, FROM_TENSOR)
    cdef uintptr_t impl = (<uintptr_t*> handle)[0]
    aoti_torch_delete_tensor_object(handle)
    return <uintptr_t> handle, impl


def c_function():
    """What gives the handle in this torch."""
    return UNPACK_C_FUNCTION.decode()
