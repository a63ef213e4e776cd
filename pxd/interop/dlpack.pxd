# DLPack in Cython, without the Python objects of tensors. torch's own C functions check neither conj nor neg nor
# gradients; these do, and raise BufferError. The structs are in `ATen.dlpack`.
from libcpp cimport bool as cbool

from ATen.core.TensorBody cimport Tensor
from ATen.dlpack cimport DLManagedTensorVersioned, DLPackExchangeAPI, DLTensor
from interop.bridges cimport OnReadonly
from interop.exceptions cimport translate_exception

cdef extern from "interop/dlpack.h" namespace "interop::dlpack":
    # The tensor of a capsule, which is used up, or of an object that supports DLPack.
    Tensor from_dlpack(object obj) except +translate_exception
    Tensor from_dlpack(object obj, OnReadonly on_readonly) except +translate_exception
    # Takes over `managed`, and calls its deleter itself if it raises.
    Tensor from_managed "interop::dlpack::from_dlpack"(DLManagedTensorVersioned* managed) except +translate_exception
    Tensor from_managed "interop::dlpack::from_dlpack"(
        DLManagedTensorVersioned* managed, OnReadonly on_readonly) except +translate_exception
    # A capsule of DLPack 1 that owns the tensor's memory; nothing waits for a stream.
    object to_dlpack(const Tensor& tensor) except +translate_exception
    object to_dlpack(const Tensor& tensor, cbool readonly) except +translate_exception
    # The same without a capsule. Whoever has it calls its deleter, once, on any thread.
    DLManagedTensorVersioned* to_managed(const Tensor& tensor) except +translate_exception
    DLManagedTensorVersioned* to_managed(const Tensor& tensor, cbool readonly) except +translate_exception
    # The table that torch.Tensor has as __dlpack_c_exchange_api__, with the checks.
    const DLPackExchangeAPI* exchange_api() except +translate_exception

cdef extern from "interop/dlpack.h" namespace "interop::dlpack" nogil:
    # What a tensor is in DLPack's words, for as long as it is neither freed, resized nor transposed in place. It owns
    # nothing. A tensor that must not be written to is given for reading alone.
    DLTensor to_dltensor(const Tensor& tensor) except +translate_exception
    DLTensor to_dltensor(const Tensor& tensor, cbool readonly) except +translate_exception
