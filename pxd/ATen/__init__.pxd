# `cimport ATen as at`: tensors, every function of ATen, and the types that these functions take. In C++ all of these
# names are in the namespaces `at` and `at::indexing`. `interop` has the names that ATen lacks.
from ATen.Context cimport (
    getNumGPUs, hasCUDA, hasHIP, hasHPU, hasLAPACK, hasMAGMA, hasMKL, hasMKLDNN, hasMPS, hasMTIA, hasOpenMP, hasXLA,
    hasXPU, manual_seed,
)
from ATen.core.Generator cimport Generator
from ATen.core.TensorBase cimport TensorBase
from ATen.core.TensorBody cimport Tensor, TensorIndex
from ATen.Functions cimport *
from ATen.OpMathType cimport toOpMathType
from ATen.Parallel cimport (
    get_num_interop_threads, get_num_threads, get_thread_num, in_parallel_region, parallel_for, parallel_reduce,
    set_num_threads,
)
from ATen.TensorIndexing cimport Ellipsis, None_, Slice
from ATen.TensorIterator cimport TensorIterator, TensorIteratorConfig
from c10.core.Device cimport (
    Device, DeviceIndex, DeviceType, kCPU, kCUDA, kHIP, kHPU, kMPS, kMTIA, kMeta, kPrivateUse1, kXLA, kXPU,
)
from c10.core.GradMode cimport GradMode
from c10.core.Layout cimport Layout, kJagged, kMkldnn, kSparse, kSparseBsc, kSparseBsr, kSparseCsc, kSparseCsr, kStrided
from c10.core.MemoryFormat cimport MemoryFormat
from c10.core.Scalar cimport Scalar
from c10.core.ScalarType cimport (
    ScalarType, elementSize, isComplexType, isFloatingType, isIntegralType, isQIntType, isSignedType, kBFloat16, kBool,
    kByte, kChar, kComplexDouble, kComplexFloat, kComplexHalf, kDouble, kFloat, kFloat8_e4m3fn, kFloat8_e4m3fnuz,
    kFloat8_e5m2, kFloat8_e5m2fnuz, kFloat8_e8m0fnu, kHalf, kInt, kLong, kQInt32, kQInt8, kQUInt8, kShort, kUInt16,
    kUInt32, kUInt64, promoteTypes, toString,
)
from c10.core.Storage cimport Storage
from c10.core.SymBool cimport SymBool
from c10.core.SymFloat cimport SymFloat
from c10.core.SymInt cimport SymInt
from c10.core.SymIntArrayRef cimport SymIntArrayRef
from c10.core.TensorOptions cimport TensorOptions
from c10.util.ArrayRef cimport ArrayRef, IntArrayRef
from c10.util.BFloat16 cimport BFloat16
from c10.util.Half cimport Half
from interop.manual cimport (
    _is_zerotensor, conj, is_complex, is_conj, is_floating_point, is_inference, is_neg, is_signed, numel, size, stride,
)
