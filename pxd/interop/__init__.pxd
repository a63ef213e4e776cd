# Names that ATen lacks, for loops, kernels and arguments: `from interop cimport elementwise, kernel`.
#
# The path of a file is that of the header that it mirrors, below csrc/include. `interop.build` drops cimports that a
# source does not use, and their headers with them. Declarations for a special purpose stay in their own files:
# interop.bridges, interop.dlpack, interop.cuda, interop.memview and so on.
from ATen.core.TensorBody cimport OptionalTensorList
from interop.accessor cimport (
    accessor1, accessor2, accessor3, accessor4, const_accessor1, const_accessor2, const_accessor3, const_accessor4,
    const_row1, const_row2, const_row3, row1, row2, row3,
)
from interop.array cimport BoolArray2, BoolArray3, BoolArray4
from interop.conditions cimport check, check_index, check_linalg, check_not_implemented, check_type, check_value
from interop.context cimport (
    alert_not_deterministic, are_deterministic_algorithms_enabled, get_cudnn_benchmark, get_cudnn_deterministic,
    get_cudnn_enabled, get_default_dtype, get_float32_matmul_precision, is_deterministic_algorithms_warn_only_enabled,
    set_cudnn_benchmark, set_cudnn_deterministic, set_cudnn_enabled, set_default_dtype, set_float32_matmul_precision,
    set_flush_denormal, use_deterministic_algorithms,
)
from interop.dispatch cimport (
    all_types, complex_, dispatch, dispatch2d, dispatch_part, floating, floating_and_reduced, integral,
)
from interop.element_types cimport (
    AT_ALL_TYPES, AT_ALL_TYPES_AND_COMPLEX, AT_BAREBONES_UNSIGNED_TYPES, AT_COMPLEX_TYPES, AT_FLOAT8_TYPES,
    AT_FLOATING_TYPES, AT_INTEGRAL_TYPES, AT_INTEGRAL_TYPES_V2, AT_REDUCED_FLOATING_TYPES, acc_t, any_t, constant_t,
    numeric_limits, opmath_t, scalar_t,
)
from interop.elementwise cimport elementwise, elementwise_out, kernel, unbroadcast
from interop.generator cimport default_generator, get_state, make_cpu_generator, set_state
from interop.indexing cimport add_index, indices
from interop.instantiate cimport (
    instantiate, instantiate2d, instantiate2d_with, instantiate_part, instantiate_part_with, instantiate_with,
)
from interop.lists cimport Dims, dims, tensors
from interop.parallel cimport Part
from interop.reduction cimport reduce
from interop.scalar cimport equal_scalars, scalar
from interop.symint cimport floordiv, mod
from interop.tensor_iterator cimport Loop, Loop2d
from interop.tuple cimport (
    get0, get1, get2, get3, get4, get5, get6, get7, get8, make_tuple, tuple2, tuple3, tuple4, tuple5, tuple6, tuple7,
    tuple9,
)
