# A number of any element type, as ATen takes it. For at.Scalar(True) see interop/scalar.pxd.
from libc.stdint cimport int64_t, uint64_t
from libcpp cimport bool as cbool

from c10.core.ScalarType cimport ScalarType
from interop.exceptions cimport translate_exception
from interop.symbolic cimport Symbolic

cdef extern from "c10/core/Scalar.h" namespace "c10" nogil:
    cppclass Scalar:
        Scalar() noexcept
        Scalar(double value) noexcept
        Scalar(float value) noexcept
        Scalar(int64_t value) noexcept
        Scalar(int value) noexcept
        Scalar(cbool value) noexcept
        Scalar(Symbolic value) noexcept
        cbool isFloatingPoint() noexcept
        cbool isComplex() noexcept
        cbool isIntegral(cbool includeBool) noexcept
        cbool isBoolean() noexcept
        cbool equal(double value) except +translate_exception
        cbool equal(int64_t value) except +translate_exception
        double toDouble() except +translate_exception
        float toFloat() except +translate_exception
        int64_t toLong() except +translate_exception
        uint64_t toUInt64() except +translate_exception
        int toInt() except +translate_exception
        cbool toBool() except +translate_exception
        # c10::complex converts to std::complex, Cython's complex type, only explicitly.
        double complex toComplexDouble "toComplexDouble().operator std::complex<double>"() except +translate_exception
        T to[T]() except +translate_exception
        ScalarType type() except +translate_exception
        Scalar operator-() except +translate_exception
        Scalar conj() except +translate_exception
