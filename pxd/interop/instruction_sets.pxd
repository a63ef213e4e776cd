# Loops that use the widest vectors of the CPU. The header lists the compiler flags that they need.
cdef extern from "interop/instruction_sets.h" namespace "interop" nogil:
    # restricted[float](p) is the pointer p, to memory that the same function writes through no other pointer.
    cppclass restricted[T]:
        restricted(T* pointer) noexcept
        T& operator[](Py_ssize_t index) noexcept

    cppclass const_restricted[T]:
        const_restricted(const T* pointer) noexcept
        T operator[](Py_ssize_t index) noexcept

cdef extern from "interop/instruction_sets.h" nogil:
    # vectorized(f, a, b) is f(a, b). Name a `cdef void ... noexcept nogil` function here, not a pointer to one. The
    # C++ compiler checks the arguments.
    void vectorized "INTEROP_VECTORIZED"(...) noexcept
