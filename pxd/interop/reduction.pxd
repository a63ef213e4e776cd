# Tensor reductions built from one scalar function.
#
#     cdef inline floating _larger(floating total, floating value) noexcept nogil:
#         return value if value > total else total
#
#     cdef at.Tensor largest(const at.Tensor& x) except *:
#         return reduce(b"largest", kernel(_larger[float], _larger[double]), x, -INFINITY, 0)
#
# The function folds a value into a total, in any order and grouping: on several threads, and into several totals at
# once. So it must be associative and commutative, and f(identity, x) must be x. As in elementwise operations, it must
# be `noexcept`, and Half and BFloat16 are computed as floats.
from libcpp cimport bool as cbool

from ATen.core.TensorBody cimport CTensor, Tensor
from interop.elementwise cimport Kernel
from interop.exceptions cimport translate_exception

cdef extern from "interop/reduction.h" namespace "interop" nogil:
    # Reduces all dimensions, or `dims`: a number, a tuple of C numbers or a list. An empty list reduces none.
    Tensor reduce[I](
        const char* name, const Kernel& kernel, CTensor& tensor, I identity) except +translate_exception
    Tensor reduce[I, D](
        const char* name, const Kernel& kernel, CTensor& tensor, I identity, D dims) except +translate_exception
    Tensor reduce[I, D](
        const char* name, const Kernel& kernel, CTensor& tensor, I identity, D dims,
        cbool keepdim) except +translate_exception
