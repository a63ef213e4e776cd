# cython: cdivision=True
# The same two functions with Cython's own decorator, for NumPy's arrays.
cimport cython
from cython cimport floating


@cython.ufunc
cdef floating add(floating x, floating y) noexcept nogil:
    return x + y


@cython.ufunc
cdef floating fused(floating x, floating y) noexcept nogil:
    return x * y + x / (<floating> 1 + y * y)
