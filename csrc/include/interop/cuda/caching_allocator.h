// The functions of c10/cuda/CUDACachingAllocator.h, which identify a device by its index.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <cstddef>
#include <utility>

#include "interop/caching_allocator.h"
#include "interop/cuda/stream.h"

namespace interop::cuda::CUDACachingAllocator {

inline c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) {
  return interop::getDeviceStats(detail::make_device(device));
}
inline void resetPeakStats(c10::DeviceIndex device) {
  interop::resetPeakStats(detail::make_device(device));
}
inline void resetAccumulatedStats(c10::DeviceIndex device) {
  interop::resetAccumulatedStats(detail::make_device(device));
}
inline void emptyCache() {
  interop::emptyCache(c10::kCUDA);
}
inline std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) {
  return interop::getMemoryInfo(detail::make_device(device));
}
inline void recordStream(const c10::Storage& storage, const CUDAStream& stream) {
  interop::recordStream(storage, stream);
}

}  // namespace interop::cuda::CUDACachingAllocator
