# `cimport ATen as at` in a module for many releases of torch: tensors, the functions of ATen, and the types that
# these functions take.
from ATen.core.Generator cimport Generator
from ATen.core.TensorBase cimport TensorBase
from ATen.core.TensorBody cimport Tensor
from ATen.Functions cimport *
from ATen.Parallel cimport get_num_threads, get_thread_num, parallel_for
from c10.core.Device cimport (
    Device, DeviceIndex, DeviceType, kCPU, kCUDA, kHIP, kHPU, kMPS, kMTIA, kMeta, kPrivateUse1, kXLA, kXPU,
)
from c10.core.Layout cimport Layout, kJagged, kMkldnn, kSparse, kSparseBsc, kSparseBsr, kSparseCsc, kSparseCsr, kStrided
from c10.core.MemoryFormat cimport MemoryFormat
from c10.core.Scalar cimport Scalar
from c10.core.ScalarType cimport (
    ScalarType, elementSize, isComplexType, isFloatingType, isIntegralType, isQIntType, kBFloat16, kBool, kByte, kChar,
    kComplexDouble, kComplexFloat, kComplexHalf, kDouble, kFloat, kFloat8_e4m3fn, kFloat8_e4m3fnuz, kFloat8_e5m2,
    kFloat8_e5m2fnuz, kFloat8_e8m0fnu, kHalf, kInt, kLong, kQInt32, kQInt8, kQUInt8, kShort, kUInt16, kUInt32, kUInt64,
    toString,
)
from c10.core.TensorOptions cimport TensorOptions
from c10.util.ArrayRef cimport ArrayRef, IntArrayRef
from c10.util.BFloat16 cimport BFloat16
from c10.util.Half cimport Half
