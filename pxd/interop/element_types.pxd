# Types of tensor elements. Fused ones, `cdef void loop(floating* x, int64_t n) noexcept nogil: ...`, are specialised
# by Cython, and interop/dispatch.pxd chooses among the specialisations. The types of C++, below, are for
# interop/instantiate.pxd.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t

from c10.util.BFloat16 cimport BFloat16
from c10.util.Half cimport Half

ctypedef fused floating:
    float
    double

# The last two are C++ classes: read one with `<float> x`, make one with `<floating_and_reduced> y`.
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

# `any_t* of` is the parameter that says for which type a function is instantiated, and scalar_t is that type. opmath_t
# is the type that torch computes with, at::opmath_type, and acc_t the one in which it adds up on the CPU, at::acc_type.
# A constant_t is a number that is known when an instance is compiled.
cdef extern from "interop/element_types.h" nogil:
    ctypedef struct any_t "auto":
        pass
    ctypedef float scalar_t "INTEROP_SCALAR"
    ctypedef double opmath_t "::interop::OpMath<INTEROP_SCALAR>"
    ctypedef double acc_t "::interop::Sum<INTEROP_SCALAR>"
    ctypedef int constant_t "auto"

    # The sets of ATen/Dispatch_v2.h, by its names, and that of AT_DISPATCH_REDUCED_FLOATING_TYPES.
    ctypedef struct TypeSet:
        pass
    const TypeSet AT_INTEGRAL_TYPES "::interop::type_sets::integral"
    const TypeSet AT_INTEGRAL_TYPES_V2 "::interop::type_sets::integral_v2"
    const TypeSet AT_BAREBONES_UNSIGNED_TYPES "::interop::type_sets::barebones_unsigned"
    const TypeSet AT_FLOATING_TYPES "::interop::type_sets::floating"
    const TypeSet AT_REDUCED_FLOATING_TYPES "::interop::type_sets::reduced_floating"
    const TypeSet AT_COMPLEX_TYPES "::interop::type_sets::complex"
    const TypeSet AT_ALL_TYPES "::interop::type_sets::all"
    const TypeSet AT_ALL_TYPES_AND_COMPLEX "::interop::type_sets::all_and_complex"

cdef extern from "interop/element_types.h" namespace "interop" nogil:
    # std::numeric_limits, for torch's element types too. lower_bound() is -inf where the type has it, else lowest(),
    # and upper_bound() inf, else max(): what a maximum and a minimum begin with, as in at::numeric_limits.
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
