# Tensor operations built from one scalar function, as @cython.ufunc builds them for NumPy arrays.
#
#     @cython.cdivision(True)  # else x / 0 raises, and nothing is vectorised
#     cdef inline floating _swish(floating x, floating beta) noexcept nogil:
#         return x / (1 + exp(-beta * x))
#
#     cdef at.Tensor swish(const at.Tensor& x, double beta) except *:
#         return elementwise(b"swish", kernel(_swish[float], _swish[double]), x, beta)
#
# The function takes values of one C type and returns that type or a C++ bool. Pass one function for each type, fused
# or not. Arguments are tensors, or numbers with a C type. As in torch, they are broadcast and promoted to a common
# dtype, integers to the default dtype if no function takes them, and the work is divided among threads. Half and
# BFloat16 are computed as floats. If no function fits the dtype, the call raises NotImplementedError.
#
# Write kernel() directly in the call. The functions must be `noexcept`, because nothing checks for errors between two
# elements; an exception still reaches the caller when its part is done. The compiler inlines functions that are
# `inline`.
#
# For meta tensors the result is a meta tensor with the right sizes, strides and dtype, so the function is a Meta
# kernel too.
#
# The result belongs to no autograd graph: while one is recorded, an input that requires grad raises. For derivatives
# see docs/kernels-guide.md.
from ATen.core.TensorBody cimport CTensor, Tensor
from interop.exceptions cimport translate_exception

cdef extern from "interop/elementwise.h" namespace "interop" nogil:
    # No C++ class has this name: a variable of this type does not compile.
    cppclass Kernel "interop::a_kernel_must_stand_in_the_call_itself":
        pass

    Kernel kernel "INTEROP_KERNEL"(...) noexcept

    Tensor elementwise(const char* name, const Kernel& kernel, ...) except +translate_exception
    # Writes to `out`, which is resized if necessary, and returns it.
    Tensor elementwise_out(const char* name, CTensor& out, const Kernel& kernel, ...) except +translate_exception

    # The gradient of an input: sums over the dimensions that broadcasting repeated, in the input's dtype.
    Tensor unbroadcast(CTensor& gradient, CTensor& input) except +translate_exception
