# Facade over interop/parallel.h: at::parallel_for() takes a C++ lambda, from which no Python error may escape.
#
# The number of threads that ATen's operators use, and loops that run on those threads.
#
#     cdef void halve(int64_t begin, int64_t end, void* data) noexcept nogil:
#         cdef float* values = <float*> data
#         cdef int64_t i
#         for i in range(begin, end):
#             values[i] /= 2
#
#     at.parallel_for(0, n, 4096, halve, values)
#
# The functions may be `noexcept`, `except *` or neither. An exception that one of them raises reaches the caller when
# all parts have ended, with or without `noexcept`. The functions run without the GIL, on threads that inherit none of
# the caller's modes (no NoGradGuard). A parallel loop inside such a function runs on its own thread only.
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool

from interop.exceptions cimport translate_exception
from interop.parallel cimport Part

cdef extern from "ATen/Parallel.h" namespace "at" nogil:
    int get_num_threads() except +translate_exception
    void set_num_threads(int count) except +translate_exception
    int get_num_interop_threads() except +translate_exception
    int get_thread_num() except +translate_exception
    cbool in_parallel_region() except +translate_exception

cdef extern from "interop/parallel.h" namespace "interop" nogil:
    # Calls function(b, e, data) for parts b:e of begin:end. Uses several threads if the range has more than `grain`
    # numbers.
    void parallel_for(
        int64_t begin, int64_t end, int64_t grain, Part function, void* data) except +translate_exception

    # Folds the results of function(b, e, identity, data) with combine(), in the order of the parts. T is the type of
    # `identity`.
    T parallel_reduce[T](
        int64_t begin, int64_t end, int64_t grain, T identity,
        T (*function)(int64_t, int64_t, T, void*) except * nogil, T (*combine)(T, T) except * nogil,
        void* data) except +translate_exception
