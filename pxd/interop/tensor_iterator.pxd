# The types of the functions that at.TensorIterator calls.
from libc.stdint cimport int64_t

cdef extern from "interop/tensor_iterator.h" namespace "interop" nogil:
    ctypedef void (*Loop)(char** data, const int64_t* strides, int64_t n, void* context) except * nogil
    # n elements along the first dimension, m along the second. The second dimension's strides follow those of the
    # first.
    ctypedef void (*Loop2d)(char** data, const int64_t* strides, int64_t n, int64_t m, void* context) except * nogil
