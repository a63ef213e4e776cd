# Functions that are written once and that C++ compiles for each dtype: AT_DISPATCH for Cython.
#
#     cdef void halve(int64_t begin, int64_t end, any_t* of) noexcept nogil:
#         cdef scalar_t* values = <scalar_t*> of
#         cdef int64_t i
#         for i in range(begin, end):
#             values[i] = <scalar_t> (<opmath_t> values[i] / 2)
#
#     at.parallel_for(0, n, 4096, instantiate_part(t.scalar_type(), b"halve", halve, AT_FLOATING_TYPES, at.kHalf), data)
#
# The types are those of interop/element_types.pxd. The last parameter must be named `any_t* of`. Its value is the
# context passed to for_each(), or the data passed to parallel_for(). Inside the function, scalar_t is the element
# type, opmath_t is the type that torch computes with, and acc_t is torch's accumulation type on the CPU:
# at::opmath_type and at::acc_type. `/`, `//`, `%`, `**` and abs() have Python's and torch's meaning for each type:
# `/` of integers is a double, `//` rounds down.
#
# The arguments after the function are dtypes and sets of dtypes. Any other dtype raises NotImplementedError, with
# torch's wording.
from libc.stdint cimport int64_t

from c10.core.ScalarType cimport ScalarType
from interop.exceptions cimport translate_exception
from interop.parallel cimport Part
from interop.tensor_iterator cimport Loop, Loop2d

cdef extern from "interop/instantiate.h" nogil:
    Loop instantiate "INTEROP_INSTANTIATE_LOOP"(
        ScalarType dtype, const char* name, ...) except +translate_exception
    Loop2d instantiate2d "INTEROP_INSTANTIATE_LOOP2D"(
        ScalarType dtype, const char* name, ...) except +translate_exception
    Part instantiate_part "INTEROP_INSTANTIATE_PART"(
        ScalarType dtype, const char* name, ...) except +translate_exception

    # For a function with the parameters (..., constant_t which, any_t* of). `which` is a C++ constant, so
    # `if which == SUM` costs nothing. `choice` is its value, from 0 to `choices` - 1, and `choices` is a literal or
    # an enumerator. A `choice` out of range raises ValueError.
    Loop instantiate_with "INTEROP_INSTANTIATE_LOOP_WITH"(
        int64_t choice, int choices, ScalarType dtype, const char* name, ...) except +translate_exception
    Loop2d instantiate2d_with "INTEROP_INSTANTIATE_LOOP2D_WITH"(
        int64_t choice, int choices, ScalarType dtype, const char* name, ...) except +translate_exception
    Part instantiate_part_with "INTEROP_INSTANTIATE_PART_WITH"(
        int64_t choice, int choices, ScalarType dtype, const char* name, ...) except +translate_exception
