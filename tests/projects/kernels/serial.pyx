# Compiled without OpenMP, by choice.
cimport ATen as at
from libc.stdint cimport int64_t


cdef void _count(int64_t begin, int64_t end, void* data) noexcept nogil:
    (<int64_t*> data)[0] += 1


def parts(int64_t n):
    """Into how many parts n iterations fall."""
    cdef int64_t count = 0
    with nogil:
        at.parallel_for(0, n, 1, _count, &count)
    return count
