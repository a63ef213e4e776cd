# The type of the function that at.parallel_for() calls.
from libc.stdint cimport int64_t

cdef extern from "interop/parallel.h" namespace "interop" nogil:
    # One part of a loop. For a fused function, dispatch_part() selects the specialisation (interop/dispatch.pxd).
    ctypedef void (*Part)(int64_t begin, int64_t end, void* data) except * nogil
