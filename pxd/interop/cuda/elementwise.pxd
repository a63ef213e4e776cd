# The host side of an elementwise CUDA kernel that interop/cuda/elementwise.cuh makes from a functor:
#     cdef Elementwise swished = Elementwise(x)
#     cdef Launch launch = Launch(swished.output())
#     launch.check(swish(swished, beta, launch.stream()), b"swish")
#     return swished.output()
# Inputs are broadcast and promoted as in torch, integers to the default dtype. An input of another dtype is copied
# first. A zero-dimensional CPU tensor counts as a number. For meta tensors the output is a meta tensor, so that
# `Elementwise(x).output()` is a Meta kernel. The output belongs to no autograd graph. While a graph is recorded, an
# input that requires grad therefore raises: make the function an operator.
from ATen.core.TensorBody cimport Tensor
from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/elementwise.h" namespace "interop::cuda" nogil:
    # Converts to `const interop::cuda::ElementwiseArguments&`, the launcher's parameter.
    cppclass Elementwise:
        Elementwise() noexcept
        Elementwise(const Tensor& a) except +translate_exception
        Elementwise(const Tensor& a, const Tensor& b) except +translate_exception
        Elementwise(const Tensor& a, const Tensor& b, const Tensor& c) except +translate_exception
        Elementwise(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) except +translate_exception
        Elementwise(
            const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, const Tensor& e,
        ) except +translate_exception
        # The newly allocated output.
        Tensor output() except +translate_exception

    # Writes to `out`, which must have the result's dtype and sizes.
    Elementwise elementwise_into "interop::cuda::Elementwise::into"(
        const Tensor& out, const Tensor& a) except +translate_exception
    Elementwise elementwise_into "interop::cuda::Elementwise::into"(
        const Tensor& out, const Tensor& a, const Tensor& b) except +translate_exception
    Elementwise elementwise_into "interop::cuda::Elementwise::into"(
        const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& c) except +translate_exception
    # For a functor that takes integers unconverted.
    Elementwise elementwise_with_integers "interop::cuda::Elementwise::with_integers"(
        const Tensor& a) except +translate_exception
    Elementwise elementwise_with_integers "interop::cuda::Elementwise::with_integers"(
        const Tensor& a, const Tensor& b) except +translate_exception
    Elementwise elementwise_with_integers "interop::cuda::Elementwise::with_integers"(
        const Tensor& a, const Tensor& b, const Tensor& c) except +translate_exception
