# The converters of `interop` for Cython, without Python tensor objects:
# `from interop.bridges cimport from_numpy, to_numpy`. They need the GIL.
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from ATen.core.TensorBody cimport Tensor
from c10.core.ScalarType cimport ScalarType
from interop.exceptions cimport translate_exception

cdef extern from "interop/bridges.h" namespace "interop::bridges":
    # The policy for read-only memory: torch has no read-only tensors. Use `share` only if nothing will write to the
    # memory.
    enum class OnReadonly "interop::bridges::OnReadonly":
        raise_ "interop::bridges::OnReadonly::raise"
        share
        copy
    # A tensor over the memory of a numpy.ndarray. The tensor keeps the array alive.
    Tensor from_numpy(object array) except +translate_exception
    Tensor from_numpy(object array, OnReadonly on_readonly) except +translate_exception
    # A numpy.ndarray over the memory of a tensor. The array keeps that memory alive.
    object to_numpy(const Tensor& tensor) except +translate_exception
    object to_numpy(const Tensor& tensor, cbool force) except +translate_exception
    object to_numpy(const Tensor& tensor, cbool force, cbool readonly) except +translate_exception
    # A memoryview of a tensor's memory, which it keeps alive.
    object as_memoryview(const Tensor& tensor) except +translate_exception
    object as_memoryview(const Tensor& tensor, cbool readonly) except +translate_exception
    # A tensor over the memory of any buffer exporter. The tensor holds the exporter's buffer.
    Tensor from_buffer(object exporter) except +translate_exception
    Tensor from_buffer(object exporter, OnReadonly on_readonly) except +translate_exception
    Tensor from_buffer(object exporter, ScalarType dtype, const vector[int64_t]& shape) except +translate_exception
    Tensor from_buffer(
        object exporter, ScalarType dtype, const vector[int64_t]& shape, int64_t offset) except +translate_exception
    Tensor from_buffer(
        object exporter, ScalarType dtype, const vector[int64_t]& shape, int64_t offset, OnReadonly on_readonly,
    ) except +translate_exception
    # The CUDA array interface, version 3: import the memory of an object that has it, and export a tensor as one.
    Tensor from_cuda_array_interface(object obj) except +translate_exception
    Tensor from_cuda_array_interface(object obj, OnReadonly on_readonly) except +translate_exception
    object to_cuda_array_interface(const Tensor& tensor) except +translate_exception
    object to_cuda_array_interface(const Tensor& tensor, cbool readonly) except +translate_exception
