# Facade over interop/indexing.h, which includes torch's header without the header of every operator.
#
# The indices between the brackets of t[...] in Python. indices() collects them (interop/indexing.pxd).
from libc.stdint cimport int64_t

from c10.core.SymInt cimport SymInt
from interop.exceptions cimport translate_exception

cdef extern from "interop/indexing.h" namespace "at::indexing" nogil:
    cppclass nullopt_t "std::nullopt_t":
        pass

    cppclass EllipsisIndexType:
        pass

    # As an index, a new axis; in a slice, an omitted part. (None is a keyword in Cython.)
    const nullopt_t None_ "at::indexing::None"
    const EllipsisIndexType Ellipsis

    # start:stop:step. A single number is the start, as in C++ and unlike Python. A step of 0 raises ValueError. A
    # negative step raises when the slice is used, as in Python.
    cppclass Slice:
        Slice() except +translate_exception
        Slice(int64_t start) except +translate_exception
        Slice(int64_t start, int64_t stop) except +translate_exception
        Slice(int64_t start, int64_t stop, int64_t step) except +translate_exception
        Slice(const nullopt_t& start, int64_t stop) except +translate_exception
        Slice(const nullopt_t& start, int64_t stop, int64_t step) except +translate_exception
        Slice(int64_t start, const nullopt_t& stop) except +translate_exception
        Slice(int64_t start, const nullopt_t& stop, int64_t step) except +translate_exception
        Slice(const nullopt_t& start, const nullopt_t& stop) except +translate_exception
        Slice(const nullopt_t& start, const nullopt_t& stop, int64_t step) except +translate_exception
        Slice(const SymInt& start) except +translate_exception
        Slice(const SymInt& start, const SymInt& stop) except +translate_exception
        Slice(const SymInt& start, const SymInt& stop, int64_t step) except +translate_exception
        Slice(const SymInt& start, int64_t stop) except +translate_exception
        Slice(const SymInt& start, int64_t stop, int64_t step) except +translate_exception
        Slice(const SymInt& start, const nullopt_t& stop) except +translate_exception
        Slice(const SymInt& start, const nullopt_t& stop, int64_t step) except +translate_exception
        Slice(int64_t start, const SymInt& stop) except +translate_exception
        Slice(int64_t start, const SymInt& stop, int64_t step) except +translate_exception
        Slice(const nullopt_t& start, const SymInt& stop) except +translate_exception
        Slice(const nullopt_t& start, const SymInt& stop, int64_t step) except +translate_exception
