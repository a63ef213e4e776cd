# `cimport torch.stable as st`: tensors in a module that is compiled once for many releases of torch, because it is
# built with Extension(..., stable="2.11"). In such a module, `cimport torch` and `cimport ATen as at` provide the
# same names as in a module for one release. This file provides the names of both, with st.Tensor for torch.Tensor and
# st.Handle for at.Tensor, and those of torch.library, the device guard and the current stream.
from ATen.core.TensorBody cimport IntList, Tensor as Handle
from ATen.Functions cimport *
from ATen.Parallel cimport get_num_threads, get_thread_num, parallel_for
from c10.core.Device cimport Device, DeviceIndex, DeviceType, kCPU, kCUDA, kMeta, kPrivateUse1, kXPU
from c10.core.DeviceGuard cimport DeviceGuard
from c10.core.Layout cimport Layout, kStrided
from c10.core.MemoryFormat cimport MemoryFormat
from c10.core.Scalar cimport Scalar
from c10.core.ScalarType cimport (
    ScalarType, kBFloat16, kBool, kByte, kChar, kComplexDouble, kComplexFloat, kDouble, kFloat, kHalf, kInt, kLong,
    kShort, kUInt16, kUInt32, kUInt64,
)
from c10.core.TensorOptions cimport TensorOptions
from c10.util.ArrayRef cimport IntArrayRef
from interop.dispatch cimport all_types, complex_, dispatch_part, floating, floating_and_reduced, integral
from interop.element_types cimport (
    AT_ALL_TYPES, AT_ALL_TYPES_AND_COMPLEX, AT_BAREBONES_UNSIGNED_TYPES, AT_COMPLEX_TYPES, AT_FLOATING_TYPES,
    AT_INTEGRAL_TYPES, AT_INTEGRAL_TYPES_V2, AT_REDUCED_FLOATING_TYPES, acc_t, any_t, constant_t, numeric_limits,
    opmath_t, scalar_t,
)
from interop.exceptions cimport translate_exception
from interop.guards cimport AutoGradMode, NoGradGuard
from interop.instantiate cimport instantiate_part, instantiate_part_with
from interop.stream cimport current_native_stream
from torch cimport Tensor, unpack, wrap, wrap_device, wrap_dtype, wrap_layout, wrap_memory_format
from torch.library cimport define, impl, register_autograd

cdef extern from "interop/stable/from_blob.h" namespace "interop::stable" nogil:
    ctypedef void (*Deleter)(void* data, void* context) noexcept nogil

    # A tensor over memory of yours, by default contiguous and on the CPU. The deleter is called once, when no tensor
    # uses the memory any more, on any thread. Without a deleter, the memory must outlive all tensors.
    Handle from_blob(void* data, IntList sizes, ScalarType dtype) except +translate_exception
    Handle from_blob(
        void* data, IntList sizes, ScalarType dtype, Deleter deleter, void* context) except +translate_exception
    Handle from_blob(
        void* data, IntList sizes, IntList strides, ScalarType dtype, const Device& device, Deleter deleter,
        void* context) except +translate_exception
