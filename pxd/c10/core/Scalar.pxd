# A number of any element type: a Python number on its way into ATen.
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool

from c10.core.ScalarType cimport ScalarType
from interop.exceptions cimport translate_exception

cdef extern from "c10/core/Scalar.h" namespace "c10" nogil:
    cppclass Scalar:
        Scalar() noexcept
        Scalar(double value) noexcept
        Scalar(float value) noexcept
        Scalar(int64_t value) noexcept
        Scalar(int value) noexcept
        Scalar(cbool value) noexcept
        cbool isFloatingPoint() noexcept
        cbool isComplex() noexcept
        cbool isIntegral(cbool includeBool) noexcept
        cbool isBoolean() noexcept
        cbool equal(double value) noexcept
        cbool equal(int64_t value) noexcept
        double toDouble() except +translate_exception
        float toFloat() except +translate_exception
        int64_t toLong() except +translate_exception
        int toInt() except +translate_exception
        cbool toBool() except +translate_exception
        T to[T]() except +translate_exception
        ScalarType type() except +translate_exception
        Scalar operator-() except +translate_exception
