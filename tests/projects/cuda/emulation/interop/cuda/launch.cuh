// In place of interop/cuda/launch.cuh, for g++: runs kernels on the host, one thread after the other.
//
// So what a kernel computes, and where it reads and writes, can be tested on a machine without a GPU: for kernels whose
// threads do not wait for one another, and whose grids are small.
#pragma once

#include <cuda_runtime.h>

#include <math.h>

#include <cstdint>

#include "interop/cuda/host_device.h"

// Hints for nvcc.
#undef __launch_bounds__
#define __launch_bounds__(...)

extern "C" {
__attribute__((weak)) const char* interop_cuda_error_name(int) {
  return "cudaErrorEmulated";
}
__attribute__((weak)) const char* interop_cuda_error_text(int) {
  return "an error of the emulation";
}
}

namespace interop::cuda {

inline dim3 blockIdx, threadIdx, blockDim;

template <class... Parameters, class... Arguments>
int launch(void (*kernel)(Parameters...), int64_t blocks, int threads, void*, const Arguments&... arguments) {
  blockDim = dim3(threads);
  for (int64_t block = 0; block < blocks; ++block) {
    blockIdx = dim3(static_cast<unsigned>(block));
    for (int thread = 0; thread < threads; ++thread) {
      threadIdx = dim3(thread);
      kernel(arguments...);
    }
  }
  return 0;
}

inline int64_t first_element(int width) {
  return (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * width;
}

}  // namespace interop::cuda
