# A floating-point number of 16 bits with the range of a float. Cython converts it where it is told to: `<float> b`,
# `<BFloat16> x`; a float may be assigned to an element of that type.
cdef extern from "c10/util/BFloat16.h" nogil:
    cppclass BFloat16 "c10::BFloat16":
        BFloat16() noexcept
        BFloat16(float value) noexcept
        BFloat16& operator=(float value) noexcept
