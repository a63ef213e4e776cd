#include "operators.h"

#include "functors.cuh"

using namespace interop::cuda;

int swish(const ElementwiseArguments& arguments, double beta, void* stream) {
  return elementwise(Floating(), arguments, Swish{beta}, stream);
}

int hypotenuse(const ElementwiseArguments& arguments, void* stream) {
  return elementwise(Floating(), arguments, Hypotenuse(), stream);
}

int multiply_add(const ElementwiseArguments& arguments, void* stream) {
  return elementwise(AllTypes(), arguments, MultiplyAdd(), stream);
}

namespace {

__global__ void touch_kernel(float* target) {
  if (threadIdx.x == 0) {
    *target = 1;
  }
}

}  // namespace

int touch(float* target, int threads, void* stream) {
  return launch(touch_kernel, 1, threads, stream, target);
}
