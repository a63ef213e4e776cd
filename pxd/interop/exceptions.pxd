cdef extern from "interop/exceptions.h" namespace "interop" nogil:
    # For `except +translate_exception`, on every function that can throw. Cython calls it with the GIL held.
    void translate_exception() noexcept
