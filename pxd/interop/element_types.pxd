# Types of tensor elements. Cython specialises fused types, as in
# `cdef void loop(floating* x, int64_t n) noexcept nogil: ...`, and interop/dispatch.pxd selects a specialisation. The
# C++ types below are for interop/instantiate.pxd.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t

from c10.util.BFloat16 cimport BFloat16
from c10.util.Half cimport Half

ctypedef fused floating:
    float
    double

# The last two are C++ classes: read an element with `<float> x`, and make one with `<floating_and_reduced> y`.
ctypedef fused floating_and_reduced:
    float
    double
    Half
    BFloat16

ctypedef fused integral:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t

ctypedef fused complex_:
    float complex
    double complex

ctypedef fused all_types:
    float
    double
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t

# The parameter `any_t* of` identifies the type for which a function is instantiated. scalar_t is that type, opmath_t
# is the type that torch computes with, at::opmath_type, and acc_t is torch's accumulation type on the CPU,
# at::acc_type. A constant_t is a number that is known when an instance is compiled.
cdef extern from "interop/element_types.h" nogil:
    ctypedef struct any_t "auto":
        pass
    ctypedef float scalar_t "INTEROP_SCALAR"
    ctypedef double opmath_t "::interop::OpMath<INTEROP_SCALAR>"
    ctypedef double acc_t "::interop::Sum<INTEROP_SCALAR>"
    ctypedef int constant_t "auto"

    # The sets of ATen/Dispatch_v2.h, with its names, and the set of AT_DISPATCH_REDUCED_FLOATING_TYPES.
    ctypedef struct TypeSet:
        pass
    const TypeSet AT_INTEGRAL_TYPES "::interop::type_sets::integral"
    const TypeSet AT_INTEGRAL_TYPES_V2 "::interop::type_sets::integral_v2"
    const TypeSet AT_BAREBONES_UNSIGNED_TYPES "::interop::type_sets::barebones_unsigned"
    const TypeSet AT_FLOATING_TYPES "::interop::type_sets::floating"
    const TypeSet AT_REDUCED_FLOATING_TYPES "::interop::type_sets::reduced_floating"
    const TypeSet AT_FLOAT8_TYPES "::interop::type_sets::float8"
    const TypeSet AT_COMPLEX_TYPES "::interop::type_sets::complex"
    const TypeSet AT_ALL_TYPES "::interop::type_sets::all"
    const TypeSet AT_ALL_TYPES_AND_COMPLEX "::interop::type_sets::all_and_complex"

cdef extern from "interop/element_types.h" namespace "interop" nogil:
    # std::numeric_limits, extended to torch's element types. lower_bound() is -inf if the type has it, else lowest().
    # upper_bound() is inf, else max(). A maximum and a minimum start from these, as in at::numeric_limits.
    cdef cppclass numeric_limits[T]:
        @staticmethod
        T min() noexcept

        @staticmethod
        T max() noexcept

        @staticmethod
        T lowest() noexcept

        @staticmethod
        T epsilon() noexcept

        @staticmethod
        T infinity() noexcept

        @staticmethod
        T quiet_NaN() noexcept

        @staticmethod
        T lower_bound() noexcept

        @staticmethod
        T upper_bound() noexcept
