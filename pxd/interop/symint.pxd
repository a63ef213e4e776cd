# Python's // and % for sizes that may be symbolic. Both round down, for numbers and symbols. Division by zero raises
# ValueError.
from libc.stdint cimport int64_t

from c10.core.SymInt cimport SymInt
from interop.exceptions cimport translate_exception

cdef extern from "interop/symint.h" namespace "interop::symint" nogil:
    SymInt floordiv(const SymInt& a, const SymInt& b) except +translate_exception
    SymInt floordiv(const SymInt& a, int64_t b) except +translate_exception
    SymInt floordiv(int64_t a, const SymInt& b) except +translate_exception
    SymInt mod(const SymInt& a, const SymInt& b) except +translate_exception
    SymInt mod(const SymInt& a, int64_t b) except +translate_exception
    SymInt mod(int64_t a, const SymInt& b) except +translate_exception
