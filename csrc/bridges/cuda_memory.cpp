// See cuda_memory.h.
#include "cuda_memory.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/util/Exception.h>
#include <torch/csrc/utils/device_lazy_init.h>

namespace interop::bridges {

void initialise_cuda() {
  if (at::detail::getCUDAHooks().hasCUDA()) {
    torch::utils::device_lazy_init(c10::kCUDA);
  }
}

c10::Device device_of_pointer(void* pointer) {
  try {
    return at::detail::getCUDAHooks().getDeviceFromPtr(pointer);
  } catch (const c10::Error& error) {
    TORCH_CHECK_VALUE(
        false,
        "argument 'obj' must point to memory of a CUDA device, got the address ",
        pointer,
        ", of which CUDA says: ",
        error.what_without_backtrace());
  }
}

}  // namespace interop::bridges
