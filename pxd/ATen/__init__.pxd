# `cimport ATen as at`: tensors, every function of ATen, and the types that they take.
from ATen.Context cimport (
    alert_not_deterministic, are_deterministic_algorithms_enabled, get_cudnn_benchmark, get_cudnn_deterministic,
    get_cudnn_enabled, get_default_dtype, get_float32_matmul_precision, getNumGPUs, hasCUDA, hasHIP, hasHPU, hasLAPACK,
    hasMAGMA, hasMKL, hasMKLDNN, hasMPS, hasMTIA, hasOpenMP, hasXLA, hasXPU,
    is_deterministic_algorithms_warn_only_enabled, is_grad_enabled, is_inference_mode_enabled, manual_seed,
    set_cudnn_benchmark, set_cudnn_deterministic, set_cudnn_enabled, set_default_dtype, set_float32_matmul_precision,
    set_flush_denormal, use_deterministic_algorithms,
)
from ATen.core.Generator cimport Generator, default_generator, make_cpu_generator
from ATen.core.TensorAccessor cimport (
    accessor1, accessor2, accessor3, accessor4, const_accessor1, const_accessor2, const_accessor3, const_accessor4,
    const_row1, const_row2, const_row3, row1, row2, row3,
)
from ATen.core.TensorBase cimport TensorBase
from ATen.core.TensorBody cimport BoolArray2, BoolArray3, BoolArray4, OptionalTensorList, Tensor, TensorIndex
from ATen.Functions cimport *
from ATen.Parallel cimport (
    Part, get_num_interop_threads, get_num_threads, get_thread_num, in_parallel_region, parallel_for, parallel_reduce,
    set_num_threads,
)
from ATen.TensorIndexing cimport Ellipsis, None_, Slice, add_index, indices, newaxis
from ATen.TensorIterator cimport Loop, Loop2d, TensorIterator, TensorIteratorConfig
from c10.core.Device cimport *
from c10.core.Layout cimport *
from c10.core.MemoryFormat cimport MemoryFormat
from c10.core.Scalar cimport Scalar, equal_scalars, scalar
from c10.core.ScalarType cimport *
from c10.core.Storage cimport Storage
from c10.core.TensorOptions cimport TensorOptions, TypeMeta
from c10.util.ArrayRef cimport ArrayRef, IntArrayRef
from c10.util.BFloat16 cimport BFloat16
from c10.util.Half cimport Half
from interop.dispatch cimport (
    all_types, complex_, dispatch, dispatch2d, dispatch_part, floating, floating_and_reduced, integral,
)
from interop.elementwise cimport elementwise, elementwise_out, kernel, unbroadcast
from interop.generator cimport get_state, set_state
from interop.lists cimport Dims, dims, tensors
from interop.manual cimport *
from interop.reduction cimport reduce
from interop.tuple cimport *
