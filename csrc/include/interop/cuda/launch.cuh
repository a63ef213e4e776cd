// Launches kernels from a .cu file. It includes none of torch's headers: those cost nvcc 10 to 50 s.
//
// A launcher is a C function. It takes pointers, numbers and the stream, and returns the result of launch(). The host
// side, interop/cuda/launch.h, selects the device and the stream, and turns the error into a Python exception.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "interop/cuda/host_device.h"

extern "C" {
__attribute__((weak)) const char* interop_cuda_error_name(int code) {
  return cudaGetErrorName(static_cast<cudaError_t>(code));
}
__attribute__((weak)) const char* interop_cuda_error_text(int code) {
  return cudaGetErrorString(static_cast<cudaError_t>(code));
}
}

namespace interop::cuda {

// Runs `kernel` on `blocks` blocks of `threads` threads, and returns the cudaError_t. Zero blocks, as for an empty
// tensor, are no error. The arguments become the kernel's parameters as in a call.
template <class... Parameters, class... Arguments>
int launch(void (*kernel)(Parameters...), int64_t blocks, int threads, void* stream, const Arguments&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "the kernel takes a different number of arguments");
  if (blocks == 0) {
    return cudaSuccess;
  }
  if (blocks > 0x7fffffff) {
    return cudaErrorInvalidConfiguration;
  }
  const auto call = [&](Parameters... parameters) {
    void* pointers[] = {const_cast<void*>(static_cast<const void*>(&parameters))...};
    return cudaLaunchKernel(
        reinterpret_cast<const void*>(kernel), dim3(static_cast<unsigned>(blocks)), dim3(threads), pointers, 0,
        static_cast<cudaStream_t>(stream));
  };
  const cudaError_t error = call(arguments...);
  if (error != cudaSuccess) {
    cudaGetLastError();  // clears the error, so that torch's next check does not report it again
  }
  return error;
}

// The number of the first element of this thread, if each thread of the grid takes `width` consecutive elements.
__device__ inline int64_t first_element(int width) {
  return (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * width;
}

}  // namespace interop::cuda
