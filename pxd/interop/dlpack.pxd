# DLPack for Cython, without Python tensor objects. torch's own C functions do not check conj, neg and gradients;
# these do, and raise BufferError. The structs are in `ATen.dlpack`.
from libcpp cimport bool as cbool

from ATen.core.TensorBody cimport Tensor
from ATen.dlpack cimport DLManagedTensorVersioned, DLPackExchangeAPI, DLTensor
from interop.bridges cimport OnReadonly
from interop.exceptions cimport translate_exception

cdef extern from "interop/dlpack.h" namespace "interop::dlpack":
    # Imports a capsule, which is consumed, or an object that supports DLPack.
    Tensor from_dlpack(object obj) except +translate_exception
    Tensor from_dlpack(object obj, OnReadonly on_readonly) except +translate_exception
    # Takes ownership of `managed`, and calls its deleter before it raises.
    Tensor from_managed "interop::dlpack::from_dlpack"(DLManagedTensorVersioned* managed) except +translate_exception
    Tensor from_managed "interop::dlpack::from_dlpack"(
        DLManagedTensorVersioned* managed, OnReadonly on_readonly) except +translate_exception
    # A DLPack 1 capsule that owns the tensor's memory. No stream is synchronised.
    object to_dlpack(const Tensor& tensor) except +translate_exception
    object to_dlpack(const Tensor& tensor, cbool readonly) except +translate_exception
    # The same without a capsule. The caller must call the deleter once, on any thread.
    DLManagedTensorVersioned* to_managed(const Tensor& tensor) except +translate_exception
    DLManagedTensorVersioned* to_managed(const Tensor& tensor, cbool readonly) except +translate_exception
    # The table of torch.Tensor's __dlpack_c_exchange_api__, with the checks added.
    const DLPackExchangeAPI* exchange_api() except +translate_exception

cdef extern from "interop/dlpack.h" namespace "interop::dlpack" nogil:
    # Describes a tensor as a DLTensor, which owns nothing. It is valid until the tensor is freed, resized or
    # transposed in place. A tensor that must not be written to is accepted only with `readonly`. The first description
    # of a copy-on-write tensor, as torch._lazy_clone() makes, copies it: hold the GIL then.
    DLTensor to_dltensor(const Tensor& tensor) except +translate_exception
    DLTensor to_dltensor(const Tensor& tensor, cbool readonly) except +translate_exception
