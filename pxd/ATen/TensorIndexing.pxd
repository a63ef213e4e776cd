# Facade over interop/indexing.h, which includes torch's header in a way that does not bring every operator along.
#
# What stands between the brackets of t[...] in Python; indices() puts it together (interop/indexing.pxd).
from libc.stdint cimport int64_t

from interop.exceptions cimport translate_exception

cdef extern from "interop/indexing.h" namespace "at::indexing" nogil:
    cppclass nullopt_t "std::nullopt_t":
        pass

    cppclass EllipsisIndexType:
        pass

    # A new axis; in a slice, a part that is left out. (None is a word of Cython.)
    const nullopt_t None_ "at::indexing::None"
    const EllipsisIndexType Ellipsis

    # start:stop:step. As in C++ and not as in Python, one number is the start. ValueError for a step of 0; a negative
    # one is refused where the slice is used, as in Python.
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
