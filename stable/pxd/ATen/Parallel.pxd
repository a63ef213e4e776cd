# The number of threads that ATen's operators use, and loops that run on those threads.
#
#     at.parallel_for(0, n, 4096, halve, values)
#
# calls `halve(begin, end, data)` for parts of the range, without the GIL. An exception that a part raises reaches the
# caller when all parts have ended, with or without `noexcept`.
from libc.stdint cimport int64_t

from interop.exceptions cimport translate_exception
from interop.parallel cimport Part

cdef extern from "ATen/Parallel.h" namespace "at" nogil:
    int get_num_threads() except +translate_exception
    int get_thread_num() except +translate_exception

cdef extern from "interop/parallel.h" namespace "interop" nogil:
    # Calls function(b, e, data) for parts b:e of begin:end. Uses several threads if the range has more than `grain`
    # numbers.
    void parallel_for(
        int64_t begin, int64_t end, int64_t grain, Part function, void* data) except +translate_exception
