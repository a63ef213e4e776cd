# Loops that run with the widest vectors of the CPU. See the header for the flags that they want.
cdef extern from "interop/instruction_sets.h" namespace "interop" nogil:
    # restricted[float](p) is the float* p, which no other pointer of the same function writes behind.
    cppclass restricted[T]:
        restricted(T* pointer) noexcept
        T& operator[](Py_ssize_t index) noexcept

    cppclass const_restricted[T]:
        const_restricted(const T* pointer) noexcept
        T operator[](Py_ssize_t index) noexcept

cdef extern from "interop/instruction_sets.h" nogil:
    # vectorized(f, a, b) is f(a, b). Name a `cdef void ... noexcept nogil` function here, not a pointer to one. It is
    # the C++ compiler that checks the arguments.
    void vectorized "INTEROP_VECTORIZED"(...) noexcept
