// What is computed for one element, and its launcher.
#include "softclip.h"

#include "interop/cuda/elementwise.cuh"

struct Softclip {
  double limit;
  template <class T>
  __device__ T operator()(T x) const {
    return T(limit) * tanh(x / T(limit));
  }
};

int softclip_kernel(const interop::cuda::ElementwiseArguments& arguments, double limit, void* stream) {
  return interop::cuda::elementwise(interop::cuda::Floating(), arguments, Softclip{limit}, stream);
}
