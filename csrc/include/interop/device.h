// c10::Device with a default constructor, so that Cython can hold one in a local variable.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "interop/exceptions.h"

namespace interop {

// Converts to and from c10::Device, which is final.
class Device {
 public:
  Device() noexcept : device_(c10::kCPU) {}
  // NOLINTNEXTLINE(google-explicit-constructor): what at::Tensor::device() returns
  Device(const c10::Device& device) noexcept : device_(device) {}
  explicit Device(c10::DeviceType type, c10::DeviceIndex index = -1) : device_(type, index) {}
  explicit Device(const std::string& text) : device_(text) {}

  // NOLINTNEXTLINE(google-explicit-constructor): what ATen's functions take
  operator c10::Device() const noexcept {
    return device_;
  }

  c10::DeviceType type() const noexcept {
    return device_.type();
  }
  c10::DeviceIndex index() const noexcept {
    return device_.index();
  }
  bool has_index() const noexcept {
    return device_.has_index();
  }
  bool is_cpu() const noexcept {
    return device_.is_cpu();
  }
  bool is_cuda() const noexcept {
    return device_.is_cuda();
  }
  bool is_meta() const noexcept {
    return device_.is_meta();
  }
  std::string str() const {
    return device_.str();
  }

  friend bool operator==(const Device& a, const Device& b) noexcept {
    return a.device_ == b.device_;
  }
  friend bool operator!=(const Device& a, const Device& b) noexcept {
    return a.device_ != b.device_;
  }

 private:
  c10::Device device_;
};

}  // namespace interop
