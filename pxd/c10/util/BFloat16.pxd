# A 16-bit floating-point number with the range of a float. Cython converts only explicitly, `<float> b` and
# `<BFloat16> x`. A float can be assigned to an element of this type.
cdef extern from "c10/util/BFloat16.h" nogil:
    cppclass BFloat16 "c10::BFloat16":
        BFloat16() noexcept
        BFloat16(float value) noexcept
        BFloat16& operator=(float value) noexcept
