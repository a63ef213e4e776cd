// The current device of the accelerator that torch was built for.
#pragma once

#include <optional>
#include <utility>

#include "interop/device.h"
#include "interop/stable/shim.h"

namespace interop {

// Takes effect on assignment, and ends with the function. Does nothing for the CPU and for devices without an index.
class DeviceGuard {
 public:
  DeviceGuard() noexcept = default;
  explicit DeviceGuard(const Device& device) noexcept : requested_(device) {}
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard(DeviceGuard&&) = delete;
  DeviceGuard& operator=(const DeviceGuard& request) {
    reset();
    if (request.requested_ && !request.requested_->is_cpu() && !request.requested_->is_meta() &&
        request.requested_->has_index()) {
      INTEROP_CALL(aoti_torch_create_device_guard, request.requested_->index(), &guard_);
    }
    return *this;
  }
  ~DeviceGuard() {
    reset();
  }
  void reset() noexcept {
    if (guard_) {
      stable::shim.aoti_torch_delete_device_guard(std::exchange(guard_, nullptr));
    }
  }

 private:
  std::optional<Device> requested_;
  DeviceGuardHandle guard_ = nullptr;
};

}  // namespace interop
