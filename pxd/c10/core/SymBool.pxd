# A boolean that may be symbolic: the result of comparing two symbolic sizes without a guard.
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
        # Specialises the compiled code to this value; the other value causes a recompilation.
        cbool guard_bool(const char* file, int64_t line) except +translate_exception
        # Specialises the compiled code to True. A value that is not known yet is checked when the compiled code runs.
        cbool expect_true(const char* file, int64_t line) except +translate_exception
        cbool guard_or_false(const char* file, int64_t line) except +translate_exception
        cbool guard_or_true(const char* file, int64_t line) except +translate_exception
