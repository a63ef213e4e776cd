# The tensor metadata that torch's C interface reports. The semantics are ATen's; `is_same` and `requires_grad` take
# the GIL.
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool

from c10.core.Device cimport Device, DeviceIndex
from c10.core.Layout cimport Layout
from c10.core.ScalarType cimport ScalarType
from c10.core.TensorOptions cimport TensorOptions, TypeMeta
from c10.util.ArrayRef cimport IntArrayRef
from interop.exceptions cimport translate_exception

cdef extern from "ATen/core/TensorBase.h" namespace "at" nogil:
    cppclass TensorBase:
        TensorBase() noexcept
        TensorBase(const TensorBase& other) except +translate_exception  # another reference to the same tensor

        cbool defined() except +translate_exception
        void reset() except +translate_exception
        cbool is_same(const TensorBase& other) except +translate_exception

        int64_t dim() except +translate_exception
        int64_t ndimension() except +translate_exception
        int64_t numel() except +translate_exception
        int64_t size(int64_t dim) except +translate_exception
        int64_t stride(int64_t dim) except +translate_exception
        int64_t storage_offset() except +translate_exception
        IntArrayRef sizes() except +translate_exception  # borrowed from the tensor, until it is resized
        IntArrayRef strides() except +translate_exception  # the same
        size_t nbytes() except +translate_exception
        size_t itemsize() except +translate_exception
        int64_t element_size() except +translate_exception
        cbool is_contiguous() except +translate_exception

        ScalarType scalar_type() except +translate_exception
        TypeMeta dtype() except +translate_exception
        Device device() except +translate_exception
        DeviceIndex get_device() except +translate_exception
        Layout layout() except +translate_exception
        TensorOptions options() except +translate_exception

        cbool is_complex() except +translate_exception
        cbool is_floating_point() except +translate_exception
        cbool is_cpu() except +translate_exception
        cbool is_cuda() except +translate_exception
        cbool is_meta() except +translate_exception
        cbool is_sparse() except +translate_exception
        cbool is_sparse_csr() except +translate_exception
        cbool is_mkldnn() except +translate_exception
        cbool is_quantized() except +translate_exception

        # Borrowed from the storage, without any conversion: the caller must check conj and neg bits, strides and the
        # device. (The templates come first: after another overload, Cython parses t.data_ptr[float] as an index.)
        T* data_ptr[T]() except +translate_exception
        void* data_ptr() except +translate_exception
        T* mutable_data_ptr[T]() except +translate_exception
        void* mutable_data_ptr() except +translate_exception
        const T* const_data_ptr[T]() except +translate_exception
        const void* const_data_ptr() except +translate_exception

        cbool requires_grad() except +translate_exception
        const TensorBase& set_requires_grad(cbool requires_grad) except +translate_exception
