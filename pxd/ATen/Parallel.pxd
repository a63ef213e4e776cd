# Facade over interop/parallel.h: at::parallel_for() takes a lambda of C++, and must not be left by a Python error.
#
# How many threads ATen's operators use, and loops over these threads.
#
#     cdef void halve(int64_t begin, int64_t end, void* data) noexcept nogil:
#         cdef float* values = <float*> data
#         cdef int64_t i
#         for i in range(begin, end):
#             values[i] /= 2
#
#     at.parallel_for(0, n, 4096, halve, values)
#
# The functions may be `noexcept`, `except *` or neither. What one of them raises, with or without `noexcept`, reaches
# the caller when all parts have ended. They run without the GIL, on threads that have none of the caller's modes (no
# NoGradGuard), and a parallel loop in one of them runs on its thread alone.
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
    # Calls function(b, e, data) for parts b:e of begin:end, on several threads if there are more than `grain` numbers.
    void parallel_for(
        int64_t begin, int64_t end, int64_t grain, Part function, void* data) except +translate_exception

    # combine() of what function(b, e, identity, data) returns for each part, in their order. T is that of `identity`.
    T parallel_reduce[T](
        int64_t begin, int64_t end, int64_t grain, T identity,
        T (*function)(int64_t, int64_t, T, void*) except * nogil, T (*combine)(T, T) except * nogil,
        void* data) except +translate_exception
