# Operations on tensors out of one scalar function, as @cython.ufunc makes them for NumPy's arrays.
#
#     @cython.cdivision(True)  # else x / 0 raises, and nothing is vectorised
#     cdef inline floating _swish(floating x, floating beta) noexcept nogil:
#         return x / (1 + exp(-beta * x))
#
#     cdef at.Tensor swish(const at.Tensor& x, double beta) except *:
#         return elementwise(b"swish", kernel(_swish[float], _swish[double]), x, beta)
#
# The function takes values of one C type and returns that type or a C++ bool; there may be one for each type, fused or
# not. Arguments are tensors, or numbers with a C type. As in torch, they are broadcast and promoted to a common dtype,
# integers to the default one if the functions take none, and the work is shared among threads. Half and BFloat16 are
# computed with as floats. NotImplementedError where no function is for the dtype.
#
# kernel() must stand in the call itself. The functions must be `noexcept`, because nobody looks at them between two
# elements; what one raises reaches the caller all the same, when a part is done. The compiler inlines what is `inline`.
#
# Of meta tensors the result is one, with the right sizes, strides and dtype: the same function is a Meta kernel.
#
# The result belongs to no graph: where autograd records one, an input that requires grad is an error. See
# docs/kernels-guide.md for derivatives.
from ATen.core.TensorBody cimport CTensor, Tensor
from interop.exceptions cimport translate_exception

cdef extern from "interop/elementwise.h" namespace "interop" nogil:
    # There is no C++ class of this name: a variable for it does not compile.
    cppclass Kernel "interop::a_kernel_must_stand_in_the_call_itself":
        pass

    Kernel kernel "INTEROP_KERNEL"(...) noexcept

    Tensor elementwise(const char* name, const Kernel& kernel, ...) except +translate_exception
    # Into `out`, which is resized if need be, and returned.
    Tensor elementwise_out(const char* name, CTensor& out, const Kernel& kernel, ...) except +translate_exception

    # The gradient of an input: summed over what broadcasting had repeated, in the input's dtype.
    Tensor unbroadcast(CTensor& gradient, CTensor& input) except +translate_exception
