# Loops that run on torch's threads and use the widest vectors of the CPU.
cdef extern from "in_parts.h" nogil:
    # in_parts(f, count, cost, a, b) calls f(begin, end, a, b) for parts of 0:count. An iteration costs as much as
    # copying `cost` elements. Name a `cdef void ... noexcept nogil` function here, not a pointer to one.
    void in_parts "LLTM_IN_PARTS"(...) except +
