# Functions that are written once and that C++ compiles for each dtype: AT_DISPATCH for Cython. The same as
# interop/instantiate.pxd for one release of torch, but without loops over iterators.
#
# The types are those of interop/element_types.pxd. The last parameter must be named `any_t* of`. Its value is the
# data passed to parallel_for(). Inside the function, scalar_t is the element type, opmath_t is the type that torch
# computes with, and acc_t is torch's accumulation type on the CPU: at::opmath_type and at::acc_type. `/`, `//`, `%`,
# `**` and abs() have Python's and torch's meaning for each type: `/` of integers is a double, `//` rounds down.
#
# The arguments after the function are dtypes and sets of dtypes. Any other dtype raises NotImplementedError, with
# torch's wording.
from libc.stdint cimport int64_t

from c10.core.ScalarType cimport ScalarType
from interop.exceptions cimport translate_exception
from interop.parallel cimport Part

cdef extern from "interop/instantiate.h" nogil:
    Part instantiate_part "INTEROP_INSTANTIATE_PART"(
        ScalarType dtype, const char* name, ...) except +translate_exception

    # For a function with the parameters (..., constant_t which, any_t* of). `which` is a C++ constant, so
    # `if which == SUM` costs nothing. `choice` is its value, from 0 to `choices` - 1, and `choices` is a literal or
    # an enumerator. A `choice` out of range raises ValueError.
    Part instantiate_part_with "INTEROP_INSTANTIATE_PART_WITH"(
        int64_t choice, int choices, ScalarType dtype, const char* name, ...) except +translate_exception
