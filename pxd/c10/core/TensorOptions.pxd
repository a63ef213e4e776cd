# dtype, layout, device and flags for a new tensor: t.options().dtype(at.kInt).
from libcpp cimport bool as cbool
from libcpp.optional cimport optional

from c10.core.Device cimport Device, DeviceType
from c10.core.Layout cimport Layout
from c10.core.MemoryFormat cimport MemoryFormat
from c10.core.ScalarType cimport ScalarType
from interop.exceptions cimport translate_exception

cdef extern from "c10/core/TensorOptions.h" nogil:
    # caffe2::TypeMeta, the type that t.dtype() returns. t.scalar_type() returns the enum.
    cppclass TypeMeta "caffe2::TypeMeta":
        TypeMeta() noexcept
        ScalarType toScalarType() except +translate_exception
        size_t itemsize() noexcept
        cbool operator==(const TypeMeta& other) noexcept

    cppclass TensorOptions "c10::TensorOptions":
        TensorOptions() noexcept
        TensorOptions(ScalarType dtype) noexcept
        TensorOptions(Layout layout) noexcept
        TensorOptions(DeviceType device) noexcept
        TensorOptions(Device device) noexcept
        TensorOptions(MemoryFormat memory_format) noexcept
        TensorOptions dtype(ScalarType dtype) noexcept
        TensorOptions dtype(optional[ScalarType] dtype) noexcept
        TensorOptions device(Device device) noexcept
        TensorOptions device(DeviceType device) noexcept
        TensorOptions layout(Layout layout) noexcept
        TensorOptions layout(optional[Layout] layout) noexcept
        TensorOptions requires_grad(cbool requires_grad) noexcept
        TensorOptions pinned_memory(cbool pinned_memory) noexcept
        TensorOptions memory_format(MemoryFormat memory_format) noexcept
        TypeMeta dtype() noexcept
        Device device() noexcept
        Layout layout() noexcept
        cbool requires_grad() noexcept
        cbool pinned_memory() noexcept
