// The caching allocator of a device: reads its statistics and releases its memory. Works for devices of any type,
// through torch's generic interface.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Device.h>
#include <c10/core/Storage.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <utility>

#include "interop/device_guard.h"
#include "interop/stream.h"

namespace interop {

namespace detail {

inline c10::DeviceAllocator& caching_allocator(c10::DeviceType type) {
  TORCH_CHECK_NOT_IMPLEMENTED(!is_host(type), "there is no caching allocator for ", type, "; request that of a GPU");
  devices(type, "there is no caching allocator");
  auto* found = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(type));
  TORCH_CHECK_NOT_IMPLEMENTED(found != nullptr, "the allocator for ", type, " keeps no statistics");
  return *found;
}

inline c10::DeviceIndex existing_index(const c10::Device& device) {
  return existing(devices(device.type(), "there is no caching allocator"), device).index();
}

}  // namespace detail

// Counts and sums. All are 0 before the first allocation.
inline c10::CachingDeviceAllocator::DeviceStats getDeviceStats(const c10::Device& device) {
  auto& allocator = detail::caching_allocator(device.type());
  return allocator.initialized() ? allocator.getDeviceStats(detail::existing_index(device))
                                 : c10::CachingDeviceAllocator::DeviceStats();
}

// Resets `peak` to `current`.
inline void resetPeakStats(const c10::Device& device) {
  auto& allocator = detail::caching_allocator(device.type());
  if (allocator.initialized()) {
    allocator.resetPeakStats(detail::existing_index(device));
  }
}

// Resets `allocated`, `freed` and the counts to 0.
inline void resetAccumulatedStats(const c10::Device& device) {
  auto& allocator = detail::caching_allocator(device.type());
  if (allocator.initialized()) {
    allocator.resetAccumulatedStats(detail::existing_index(device));
  }
}

// Releases cached memory that no tensor uses, on all devices of the type.
inline void emptyCache(c10::DeviceType type) {
  auto& allocator = detail::caching_allocator(type);
  if (allocator.initialized()) {
    allocator.emptyCache();
  }
}

// Free and total bytes of the device, as its driver reports them.
inline std::pair<size_t, size_t> getMemoryInfo(const c10::Device& device) {
  return detail::caching_allocator(device.type()).getMemoryInfo(detail::existing_index(device));
}

// Once the memory is freed, the allocator reuses it only after all work queued on the stream by then.
inline void recordStream(const c10::Storage& storage, const Stream& stream) {
  TORCH_CHECK_VALUE(storage, "the storage is undefined; take a tensor's with t.storage()");
  const c10::Stream on = stream;
  TORCH_CHECK_VALUE(
      storage.device_type() == on.device_type(), "memory of ", storage.device(), " cannot be used on a stream of ",
      on.device());
  detail::devices_of(on, "the use of a stream cannot be recorded").recordDataPtrOnStream(storage.data_ptr(), on);
}

}  // namespace interop
