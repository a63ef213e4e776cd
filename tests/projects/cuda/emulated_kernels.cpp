// Kernels compiled for the host: emulation/interop/cuda/launch.cuh runs them one thread after the other.
#include "emulated_kernels.h"

#include "functors.cuh"
#include "interop/cuda/divide.cuh"
#include "interop/cuda/elementwise.h"

namespace {

using interop::cuda::Elementwise;

template <class F, class... Tensors>
at::Tensor run(const F& functor, Elementwise::Integers integers, bool wide, const Tensors&... inputs) {
  const auto prepared = Elementwise::prepared(at::Tensor(), Elementwise::RequiredDevice::any, integers, inputs...);
  interop::cuda::ElementwiseArguments arguments = prepared;
  arguments.fits_32_bit = arguments.fits_32_bit && !wide;
  arguments.contiguous = arguments.contiguous && !wide;
  TORCH_CHECK(interop::cuda::elementwise(interop::cuda::AllTypes(), arguments, functor, nullptr) == 0, "it failed");
  return prepared.output();
}

}  // namespace

at::Tensor emulated_swish(const at::Tensor& x, double beta, bool wide) {
  return run(Swish{beta}, Elementwise::Integers::to_floating, wide, x);
}

at::Tensor emulated_hypotenuse(const at::Tensor& x, const at::Tensor& y, bool wide) {
  return run(Hypotenuse(), Elementwise::Integers::to_floating, wide, x, y);
}

at::Tensor emulated_multiply_add(const at::Tensor& x, const at::Tensor& y, const at::Tensor& z, bool wide) {
  return run(MultiplyAdd(), Elementwise::Integers::as_they_are, wide, x, y, z);
}

at::Tensor emulated_hypotenuse_into(const at::Tensor& out, const at::Tensor& x, const at::Tensor& y) {
  const auto prepared =
      Elementwise::prepared(out, Elementwise::RequiredDevice::any, Elementwise::Integers::to_floating, x, y);
  TORCH_CHECK(interop::cuda::elementwise(interop::cuda::Floating(), prepared, Hypotenuse(), nullptr) == 0, "it failed");
  return prepared.output();
}

int emulated_swish_of(const at::Tensor& x, int64_t inputs) {
  Elementwise prepared;
  if (inputs == 2) {
    prepared =
        Elementwise::prepared(at::Tensor(), Elementwise::RequiredDevice::any, Elementwise::Integers::to_floating, x, x);
  }
  return interop::cuda::elementwise(interop::cuda::Floating(), prepared, Swish{1}, nullptr);
}

int64_t quotient(int64_t dividend, int64_t divisor) {
  return interop::cuda::Divisor::of(static_cast<uint32_t>(divisor)).quotient(static_cast<uint32_t>(dividend));
}
