// CUDA devices by index: c10/cuda/CUDAFunctions.h.
#pragma once

#include <c10/core/Device.h>

#include "interop/cuda/compiled.h"
#include "interop/device_guard.h"

#ifdef INTEROP_WITH_CUDA
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace interop::cuda {

// 0 if torch finds no device or is built without CUDA. Neither is an error.
inline c10::DeviceIndex device_count() noexcept {
  return interop::device_count(c10::kCUDA);
}

inline c10::DeviceIndex device_count_ensure_non_zero() {
  return interop::detail::devices(c10::kCUDA, "CUDA cannot be used").deviceCount();
}

inline c10::DeviceIndex current_device() {
  return interop::current_device(c10::kCUDA).index();
}

inline void set_device(c10::DeviceIndex device) {
  interop::set_device(detail::make_device(device));
}

// Makes a device current and returns the previous one.
inline c10::DeviceIndex ExchangeDevice(c10::DeviceIndex device) {
  const auto& devices = interop::detail::devices(c10::kCUDA, "a device cannot be made current");
  return devices.exchangeDevice(interop::detail::existing(devices, detail::make_device(device))).index();
}

// Synchronises with the current device.
inline void device_synchronize() {
#ifdef INTEROP_WITH_CUDA
  detail::existing(-1, "a device cannot be waited for");
  // Unlike the generic function, it obeys torch.cuda.set_sync_debug_mode().
  c10::cuda::device_synchronize();
#else
  interop::device_synchronize(c10::kCUDA);
#endif
}

// Whether this process has used the device, and so has a context there, which takes some 100 MB.
inline bool hasPrimaryContext([[maybe_unused]] c10::DeviceIndex device) {
#ifdef INTEROP_WITH_CUDA
  return c10::cuda::hasPrimaryContext(detail::existing(device, "there is no context").index());
#else
  detail::not_compiled("there is no context");
#endif
}

}  // namespace interop::cuda
