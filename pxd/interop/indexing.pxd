# The indices between the brackets of t[...] in Python, for t.index(...) and t.index_put_(...).
#
#     t.index(indices(at.Slice(0, 3), 1, mask))               t[0:3, 1, mask]
#     t.index(indices(at.None_, at.Ellipsis, -1))             t[None, ..., -1]
#     t.index(indices(at.Slice(at.None_, at.None_, 2)))       t[::2]
#     t.index_put_(indices(mask), 0.0)                        t[mask] = 0.0
#
# An index may be a C integer, an at.Slice, an at.Tensor, at.None_, at.Ellipsis, a C++ bool or an at.Scalar. With the
# GIL, it may be any Python object that is valid as an index, except lists. It may not be a C int: Cython turns True
# into an int, which would select element 1, so that does not compile. Write <long>i for an element, and scalar(flag)
# for a boolean.
from libcpp.vector cimport vector

from ATen.core.TensorBody cimport TensorIndex
from interop.exceptions cimport translate_exception

cdef extern from "interop/indexing.h" namespace "interop" nogil:
    vector[TensorIndex] indices[A](const A& a) except +translate_exception
    vector[TensorIndex] indices[A, B](const A& a, const B& b) except +translate_exception
    vector[TensorIndex] indices[A, B, C](const A& a, const B& b, const C& c) except +translate_exception
    vector[TensorIndex] indices[A, B, C, D](
        const A& a, const B& b, const C& c, const D& d) except +translate_exception
    vector[TensorIndex] indices[A, B, C, D, E](
        const A& a, const B& b, const C& c, const D& d, const E& e) except +translate_exception
    vector[TensorIndex] indices[A, B, C, D, E, F](
        const A& a, const B& b, const C& c, const D& d, const E& e, const F& f) except +translate_exception

    # Appends an index, if the number of indices is not known in advance.
    void add_index[A](vector[TensorIndex]& all, const A& a) except +translate_exception
