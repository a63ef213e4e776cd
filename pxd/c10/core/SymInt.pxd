# A size that may be symbolic. While torch.compile or torch.export traces with dynamic shapes, x.sym_size(0) stands
# for any size; at other times it is a number. Arithmetic keeps the symbol. A comparison that returns a bool adds a
# guard.
#
# C++'s own / and % of two integers are not declared: they round numbers towards zero and symbols down, and division by
# the number 0 terminates the process. Use `floordiv` and `mod` from interop, which are Python's // and %.
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.optional cimport optional

from c10.core.SymBool cimport SymBool
from c10.core.SymFloat cimport SymFloat
from interop.exceptions cimport translate_exception
from interop.symbolic cimport Symbolic, use_floordiv_or_a_float

cdef extern from "c10/core/SymInt.h" namespace "c10" nogil:
    cppclass SymInt(Symbolic):
        SymInt() noexcept
        SymInt(int64_t value) noexcept
        SymInt(const SymInt& other) noexcept
        SymInt& operator=(int64_t value) noexcept
        SymInt& operator=(const SymInt& other) noexcept
        cbool is_symbolic() noexcept
        optional[int64_t] maybe_as_int() except +translate_exception  # empty if symbolic
        # The number. Specialises the compiled code to this size; each other size causes a recompilation.
        int64_t guard_int(const char* file, int64_t line) except +translate_exception
        int64_t expect_int() except +translate_exception  # raises if symbolic
        SymInt min(const SymInt& other) except +translate_exception
        SymInt min(int64_t other) except +translate_exception
        SymInt max(const SymInt& other) except +translate_exception
        SymInt max(int64_t other) except +translate_exception
        # Comparisons without a guard, for interop's check(), which is torch._check().
        SymBool sym_eq(const SymInt& other) except +translate_exception
        SymBool sym_eq(int64_t other) except +translate_exception
        SymBool sym_ne(const SymInt& other) except +translate_exception
        SymBool sym_ne(int64_t other) except +translate_exception
        SymBool sym_lt(const SymInt& other) except +translate_exception
        SymBool sym_lt(int64_t other) except +translate_exception
        SymBool sym_le(const SymInt& other) except +translate_exception
        SymBool sym_le(int64_t other) except +translate_exception
        SymBool sym_gt(const SymInt& other) except +translate_exception
        SymBool sym_gt(int64_t other) except +translate_exception
        SymBool sym_ge(const SymInt& other) except +translate_exception
        SymBool sym_ge(int64_t other) except +translate_exception
        SymInt operator+(const SymInt& other) except +translate_exception
        SymInt operator+(int64_t other) except +translate_exception
        SymInt operator-(const SymInt& other) except +translate_exception
        SymInt operator-(int64_t other) except +translate_exception
        SymInt operator*(const SymInt& other) except +translate_exception
        SymInt operator*(int64_t other) except +translate_exception
        SymFloat operator+(double other) except +translate_exception
        SymFloat operator-(double other) except +translate_exception
        SymFloat operator*(double other) except +translate_exception
        SymFloat operator/(double other) except +translate_exception
        use_floordiv_or_a_float operator/(int64_t other) except +translate_exception
        cbool operator==(const SymInt& other) except +translate_exception
        cbool operator==(int64_t other) except +translate_exception
        cbool operator!=(const SymInt& other) except +translate_exception
        cbool operator!=(int64_t other) except +translate_exception
        cbool operator<(const SymInt& other) except +translate_exception
        cbool operator<(int64_t other) except +translate_exception
        cbool operator<=(const SymInt& other) except +translate_exception
        cbool operator<=(int64_t other) except +translate_exception
        cbool operator>(const SymInt& other) except +translate_exception
        cbool operator>(int64_t other) except +translate_exception
        cbool operator>=(const SymInt& other) except +translate_exception
        cbool operator>=(int64_t other) except +translate_exception
        # With the number on the left, these are not members in C++, but Cython looks them up here.
        SymInt operator+(int64_t value, const SymInt& other) except +translate_exception
        SymInt operator-(int64_t value, const SymInt& other) except +translate_exception
        SymInt operator*(int64_t value, const SymInt& other) except +translate_exception
        SymFloat operator+(double value, const SymInt& other) except +translate_exception
        SymFloat operator-(double value, const SymInt& other) except +translate_exception
        SymFloat operator*(double value, const SymInt& other) except +translate_exception
        SymFloat operator/(double value, const SymInt& other) except +translate_exception
        use_floordiv_or_a_float operator/(int64_t value, const SymInt& other) except +translate_exception
        cbool operator==(int64_t value, const SymInt& other) except +translate_exception
        cbool operator!=(int64_t value, const SymInt& other) except +translate_exception
        cbool operator<(int64_t value, const SymInt& other) except +translate_exception
        cbool operator<=(int64_t value, const SymInt& other) except +translate_exception
        cbool operator>(int64_t value, const SymInt& other) except +translate_exception
        cbool operator>=(int64_t value, const SymInt& other) except +translate_exception
        SymInt operator-() except +translate_exception
