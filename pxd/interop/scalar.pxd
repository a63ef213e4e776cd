# scalar(x) makes an at.Scalar from a bool, an integer, a C floating-point or complex number, or a Python number, and
# keeps its kind. The constructor at.Scalar(x) cannot: to C++, True is an int, so at.Scalar(True) is the number 1.
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
    # Whether two numbers are equal. A bool equals only bools.
    cbool equal_scalars "interop::equal"(const Scalar& a, const Scalar& b) except +translate_exception

cdef extern from "interop/scalar.h":
    Scalar scalar "interop::scalar_of_object"(object value) except +translate_exception
