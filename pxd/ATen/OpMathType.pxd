# The dtype that torch computes in: kFloat for kHalf. opmath_t of interop/element_types.pxd is the same as a type.
from c10.core.ScalarType cimport ScalarType
from interop.exceptions cimport translate_exception

cdef extern from "ATen/OpMathType.h" namespace "at" nogil:
    ScalarType toOpMathType(ScalarType type) except +translate_exception
