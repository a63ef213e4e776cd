# Facade over interop/sizes.h: its methods raise if a size requested as a number is symbolic. All else is torch's.
#
# The part of a tensor that torch writes by hand: metadata, storage, raw data. For an ordinary tensor, reading
# metadata is a field read. It can still throw: a nested tensor has no sizes, and symbolic sizes are not numbers.
from libc.stdint cimport int64_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.string cimport string

from c10.core.Device cimport Device, DeviceIndex
from c10.core.Layout cimport Layout
from c10.core.MemoryFormat cimport MemoryFormat
from c10.core.ScalarType cimport ScalarType
from c10.core.Storage cimport Storage
from c10.core.SymBool cimport SymBool
from c10.core.SymInt cimport SymInt
from c10.core.SymIntArrayRef cimport SymIntArrayRef
from c10.core.TensorOptions cimport TensorOptions, TypeMeta
from c10.util.ArrayRef cimport IntArrayRef
from interop.exceptions cimport translate_exception

cdef extern from "interop/sizes.h" namespace "at" nogil:
    cppclass TensorBase:
        TensorBase() noexcept
        TensorBase(const TensorBase& other) noexcept  # another reference to the same tensor

        cbool defined() noexcept
        void reset() noexcept
        cbool is_same(const TensorBase& other) noexcept
        size_t use_count() noexcept

        int64_t dim() except +translate_exception
        int64_t ndimension() except +translate_exception
        int64_t numel "getIntrusivePtr()->*interop::sizes::numel"() except +translate_exception
        int64_t size "getIntrusivePtr()->*interop::sizes::size"(int64_t dim) except +translate_exception
        int64_t stride "getIntrusivePtr()->*interop::sizes::stride"(int64_t dim) except +translate_exception
        int64_t storage_offset "getIntrusivePtr()->*interop::sizes::storage_offset"() except +translate_exception
        # Borrowed from the tensor, until it is resized.
        IntArrayRef sizes "getIntrusivePtr()->*interop::sizes::sizes"() except +translate_exception
        IntArrayRef strides "getIntrusivePtr()->*interop::sizes::strides"() except +translate_exception
        size_t nbytes "getIntrusivePtr()->*interop::sizes::nbytes"() except +translate_exception
        # The same for sizes that may be symbolic. sym_sizes and sym_strides are borrowed in the same way.
        SymInt sym_numel() except +translate_exception
        SymInt sym_size(int64_t dim) except +translate_exception
        SymInt sym_stride(int64_t dim) except +translate_exception
        SymInt sym_storage_offset() except +translate_exception
        SymInt sym_nbytes() except +translate_exception
        SymIntArrayRef sym_sizes() except +translate_exception
        SymIntArrayRef sym_strides() except +translate_exception
        size_t itemsize() except +translate_exception
        int64_t element_size() except +translate_exception
        cbool is_contiguous() except +translate_exception
        cbool is_contiguous(MemoryFormat memory_format) except +translate_exception
        SymBool sym_is_contiguous() except +translate_exception
        SymBool sym_is_contiguous(MemoryFormat memory_format) except +translate_exception
        cbool is_non_overlapping_and_dense() except +translate_exception
        MemoryFormat suggest_memory_format() except +translate_exception

        ScalarType scalar_type() except +translate_exception
        TypeMeta dtype() noexcept
        Device device() except +translate_exception
        DeviceIndex get_device() except +translate_exception
        Layout layout() except +translate_exception
        TensorOptions options() except +translate_exception

        cbool is_complex() except +translate_exception
        cbool is_floating_point() except +translate_exception
        cbool is_signed() except +translate_exception
        cbool is_conj() except +translate_exception
        cbool is_neg() except +translate_exception
        cbool is_cpu() except +translate_exception
        cbool is_cuda() except +translate_exception
        cbool is_meta() except +translate_exception
        cbool is_sparse() except +translate_exception
        cbool is_sparse_csr() except +translate_exception
        cbool is_mkldnn() except +translate_exception
        cbool is_quantized() except +translate_exception
        cbool is_nested() except +translate_exception
        cbool is_inference() except +translate_exception

        cbool has_storage() noexcept
        Storage storage() except +translate_exception
        cbool is_alias_of(const TensorBase& other) except +translate_exception
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
        cbool is_leaf() except +translate_exception
        int64_t output_nr() except +translate_exception
        int64_t _version() except +translate_exception
        cbool is_view() except +translate_exception
        string toString() except +translate_exception
