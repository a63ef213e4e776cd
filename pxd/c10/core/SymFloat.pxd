# A float that may be symbolic, such as 1.0 / n for an at.SymInt `n`. It is for arguments of ATen's functions: every
# `const Scalar&` takes one.
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool

from interop.exceptions cimport translate_exception
from interop.symbolic cimport Symbolic

cdef extern from "c10/core/SymFloat.h" namespace "c10" nogil:
    cppclass SymFloat(Symbolic):
        SymFloat() noexcept
        SymFloat(double value) noexcept
        SymFloat(const SymFloat& other) noexcept
        SymFloat& operator=(double value) noexcept
        SymFloat& operator=(const SymFloat& other) noexcept
        cbool is_symbolic() noexcept
        # The number. Specialises the compiled code to it; each other number causes a recompilation.
        double guard_float(const char* file, int64_t line) except +translate_exception
        double expect_float() except +translate_exception  # raises if symbolic
        SymFloat sqrt() except +translate_exception
        SymFloat operator+(const SymFloat& other) except +translate_exception
        SymFloat operator+(double other) except +translate_exception
        SymFloat operator-(const SymFloat& other) except +translate_exception
        SymFloat operator-(double other) except +translate_exception
        SymFloat operator*(const SymFloat& other) except +translate_exception
        SymFloat operator*(double other) except +translate_exception
        SymFloat operator/(const SymFloat& other) except +translate_exception
        SymFloat operator/(double other) except +translate_exception
