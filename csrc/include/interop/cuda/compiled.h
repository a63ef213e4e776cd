// Helpers for functions that only a module compiled for a torch with CUDA has. For such a module, interop.build
// defines INTEROP_WITH_CUDA, adds the folder of CUDA's headers, and links c10_cuda, torch_cuda and cudart.
//
// All other functions use torch's generic interface for devices, in libc10. Their code is the same for every build of
// torch, and can be tried with devices that do not exist. It is as exact as direct calls, because the interface makes
// the same calls.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <optional>

#include "interop/device_guard.h"

namespace interop::cuda::detail {

// Raises what is wrong with CUDA in the running torch. If nothing is, says that this module was compiled without it.
[[noreturn]] inline void not_compiled(const char* what) {
  interop::detail::devices(c10::kCUDA, what);
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, what,
      ": this module was compiled for a torch without CUDA; compile it again with the torch that it runs with");
}

inline c10::Device make_device(c10::DeviceIndex index) {
  return interop::detail::make_device(c10::kCUDA, index);
}

// The device, with its index. Raises if it does not exist.
inline c10::Device existing(c10::DeviceIndex index, const char* what) {
  return interop::detail::existing(interop::detail::devices(c10::kCUDA, what), make_device(index));
}

inline void check_cuda(const c10::Device& device, const char* what) {
  TORCH_CHECK_VALUE(device.is_cuda(), what, " must belong to CUDA, got ", device);
}

}  // namespace interop::cuda::detail
