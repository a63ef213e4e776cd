# A floating-point number of 16 bits. Cython converts it where it is told to: `<float> h`, `<Half> x`.
cdef extern from "c10/util/Half.h" nogil:
    cppclass Half "c10::Half":
        Half() noexcept
        Half(float value) noexcept
