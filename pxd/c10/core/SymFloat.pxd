# A float that may be symbolic, such as 1.0 / n for an at.SymInt `n`. It is for arguments of ATen's functions: every
# `const Scalar&` takes one. A comparison that returns a bool adds a guard. C++ has no operator with the number on the
# left: write f * 2.0.
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool

from c10.core.SymBool cimport SymBool
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
        SymFloat min(const SymFloat& other) except +translate_exception
        SymFloat min(double other) except +translate_exception
        SymFloat max(const SymFloat& other) except +translate_exception
        SymFloat max(double other) except +translate_exception
        # Comparisons without a guard, for interop's check(), which is torch._check().
        SymBool sym_eq(const SymFloat& other) except +translate_exception
        SymBool sym_eq(double other) except +translate_exception
        SymBool sym_ne(const SymFloat& other) except +translate_exception
        SymBool sym_ne(double other) except +translate_exception
        SymBool sym_lt(const SymFloat& other) except +translate_exception
        SymBool sym_lt(double other) except +translate_exception
        SymBool sym_le(const SymFloat& other) except +translate_exception
        SymBool sym_le(double other) except +translate_exception
        SymBool sym_gt(const SymFloat& other) except +translate_exception
        SymBool sym_gt(double other) except +translate_exception
        SymBool sym_ge(const SymFloat& other) except +translate_exception
        SymBool sym_ge(double other) except +translate_exception
        SymFloat sqrt() except +translate_exception
        SymFloat operator+(const SymFloat& other) except +translate_exception
        SymFloat operator+(double other) except +translate_exception
        SymFloat operator-(const SymFloat& other) except +translate_exception
        SymFloat operator-(double other) except +translate_exception
        SymFloat operator*(const SymFloat& other) except +translate_exception
        SymFloat operator*(double other) except +translate_exception
        SymFloat operator/(const SymFloat& other) except +translate_exception
        SymFloat operator/(double other) except +translate_exception
        cbool operator==(const SymFloat& other) except +translate_exception
        cbool operator==(double other) except +translate_exception
        cbool operator!=(const SymFloat& other) except +translate_exception
        cbool operator!=(double other) except +translate_exception
        cbool operator<(const SymFloat& other) except +translate_exception
        cbool operator<(double other) except +translate_exception
        cbool operator<=(const SymFloat& other) except +translate_exception
        cbool operator<=(double other) except +translate_exception
        cbool operator>(const SymFloat& other) except +translate_exception
        cbool operator>(double other) except +translate_exception
        cbool operator>=(const SymFloat& other) except +translate_exception
        cbool operator>=(double other) except +translate_exception
