# scalar(x) makes an at.Scalar of what x is: a truth value, an integer, a floating-point or complex number of C, or a
# number of Python. The constructor at.Scalar(x) cannot: C++ sees an int in True, so at.Scalar(True) is the number 1.
from libc.stdint cimport uint64_t
from libcpp cimport bool as cbool

from c10.core.Scalar cimport Scalar
from interop.exceptions cimport translate_exception

cdef extern from "interop/scalar.h" nogil:
    Scalar scalar "interop::scalar_of_bool"(cbool value) noexcept
    Scalar scalar "interop::scalar_of_int"(int value) noexcept
    Scalar scalar "interop::scalar_of_int"(long value) noexcept
    Scalar scalar "interop::scalar_of_int"(long long value) noexcept
    Scalar scalar "interop::scalar_of_unsigned"(uint64_t value) noexcept
    Scalar scalar "interop::scalar_of_double"(double value) noexcept
    Scalar scalar "interop::scalar_of_complex"(double complex value) noexcept
    # Equal numbers; a truth value equals truth values only.
    cbool equal_scalars "interop::equal"(const Scalar& a, const Scalar& b) except +translate_exception

cdef extern from "interop/scalar.h":
    Scalar scalar "interop::scalar_of_object"(object value) except +translate_exception
