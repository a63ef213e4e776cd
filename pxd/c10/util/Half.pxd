# A 16-bit floating-point number. Cython converts only explicitly: `<float> h`, `<Half> x`.
cdef extern from "c10/util/Half.h" nogil:
    cppclass Half "c10::Half":
        Half() noexcept
        Half(float value) noexcept
