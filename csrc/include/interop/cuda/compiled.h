// What a module can do for CUDA only if it was compiled for a torch with CUDA: then interop.build defines
// INTEROP_WITH_CUDA, adds the folder of CUDA's headers, and links c10_cuda, torch_cuda and cudart.
//
// All else goes through torch's generic interface for devices, in libc10. It is the same code with every build of
// torch, it can be tried with devices that are not there, and it is as exact: behind it stands what is called directly
// otherwise.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <optional>

#include "interop/device_guard.h"

namespace interop::cuda::detail {

// Raises what is wrong with CUDA in the running torch; and if nothing is, that this module was compiled without it.
[[noreturn]] inline void not_compiled(const char* what) {
  interop::detail::devices(c10::kCUDA, what);
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, what,
      ": this module was compiled for a torch without CUDA; compile it again with the torch that it runs with");
}

inline c10::Device make_device(c10::DeviceIndex index) {
  return interop::detail::make_device(c10::kCUDA, index);
}

// The device with its index; raises where there is none.
inline c10::Device existing(c10::DeviceIndex index, const char* what) {
  return interop::detail::existing(interop::detail::devices(c10::kCUDA, what), make_device(index));
}

inline void check_cuda(const c10::Device& device, const char* what) {
  TORCH_CHECK_VALUE(device.is_cuda(), what, " must be of CUDA, got ", device);
}

}  // namespace interop::cuda::detail
