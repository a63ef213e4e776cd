# A truth value that may be symbolic: what two symbolic sizes are compared to without a guard.
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.optional cimport optional

from interop.exceptions cimport translate_exception

cdef extern from "c10/core/SymBool.h" namespace "c10" nogil:
    cppclass SymBool:
        SymBool() noexcept
        SymBool(cbool value) noexcept
        SymBool sym_and(const SymBool& other) except +translate_exception
        SymBool sym_or(const SymBool& other) except +translate_exception
        SymBool sym_not() except +translate_exception
        optional[cbool] maybe_as_bool() except +translate_exception
        # What is compiled is then for this value, and is compiled anew for the other.
        cbool guard_bool(const char* file, int64_t line) except +translate_exception
        # What is compiled is then for True, and checks it when it runs, where nothing is known of it yet.
        cbool expect_true(const char* file, int64_t line) except +translate_exception
        cbool guard_or_false(const char* file, int64_t line) except +translate_exception
        cbool guard_or_true(const char* file, int64_t line) except +translate_exception
