# What stands between the brackets of t[...] in Python, for t.index(...) and t.index_put_(...).
#
#     t.index(at.indices(at.Slice(0, 3), 1, mask))             t[0:3, 1, mask]
#     t.index(at.indices(at.None_, at.Ellipsis, -1))           t[None, ..., -1]
#     t.index(at.indices(at.Slice(at.None_, at.None_, 2)))     t[::2]
#     t.index_put_(at.indices(mask), 0.0)                      t[mask] = 0.0
#
# An index may be a C integer, an at.Slice, an at.Tensor, at.None_, at.Ellipsis, a C++ bool, an at.Scalar, and with the
# GIL any Python object that a Python index may be, except lists. It may not be a C int: Cython makes one of True, which
# would be element 1, so that does not compile. Write <long>i for an element, at.scalar(flag) for a truth value.
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from ATen.core.TensorBody cimport TensorIndex
from interop.exceptions cimport translate_exception

cdef extern from "interop/indexing.h" namespace "interop" nogil:
    cppclass NoneIndex "std::nullopt_t":
        pass

    cppclass EllipsisIndex "at::indexing::EllipsisIndexType":
        pass

    # A new axis; in a slice, a part that is left out.
    const NoneIndex None_ "at::indexing::None"
    const NoneIndex newaxis "at::indexing::None"
    const EllipsisIndex Ellipsis "at::indexing::Ellipsis"

    # start:stop:step. As in C++ and not as in Python, one number is the start. ValueError for a step of 0; a negative
    # one is refused where the slice is used, as in Python.
    cppclass Slice "at::indexing::Slice":
        Slice() except +translate_exception
        Slice(int64_t start) except +translate_exception
        Slice(int64_t start, int64_t stop) except +translate_exception
        Slice(int64_t start, int64_t stop, int64_t step) except +translate_exception
        Slice(const NoneIndex& start, int64_t stop) except +translate_exception
        Slice(const NoneIndex& start, int64_t stop, int64_t step) except +translate_exception
        Slice(int64_t start, const NoneIndex& stop) except +translate_exception
        Slice(int64_t start, const NoneIndex& stop, int64_t step) except +translate_exception
        Slice(const NoneIndex& start, const NoneIndex& stop) except +translate_exception
        Slice(const NoneIndex& start, const NoneIndex& stop, int64_t step) except +translate_exception

    vector[TensorIndex] indices[A](const A& a) except +translate_exception
    vector[TensorIndex] indices[A, B](const A& a, const B& b) except +translate_exception
    vector[TensorIndex] indices[A, B, C](const A& a, const B& b, const C& c) except +translate_exception
    vector[TensorIndex] indices[A, B, C, D](
        const A& a, const B& b, const C& c, const D& d) except +translate_exception
    vector[TensorIndex] indices[A, B, C, D, E](
        const A& a, const B& b, const C& c, const D& d, const E& e) except +translate_exception
    vector[TensorIndex] indices[A, B, C, D, E, F](
        const A& a, const B& b, const C& c, const D& d, const E& e, const F& f) except +translate_exception

    # One more at the end, for indices whose number is not known beforehand.
    void add_index[A](vector[TensorIndex]& all, const A& a) except +translate_exception
