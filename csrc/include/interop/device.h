// c10::Device with a default constructor, so that Cython can hold one in a local variable.
#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

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

namespace detail {

template <class T>
struct TorchDevice {
  using Type = T;
};
template <>
struct TorchDevice<Device> {
  using Type = c10::Device;
};
template <class T>
struct TorchDevice<std::optional<T>> {
  using Type = std::optional<typename TorchDevice<T>::Type>;
};
template <class T>
struct TorchDevice<std::vector<T>> {
  using Type = std::vector<typename TorchDevice<T>::Type>;
};

}  // namespace detail

// T with c10::Device in place of Device: for a device, an optional one, and a list.
template <class T>
using WithTorchDevice = typename detail::TorchDevice<T>::Type;
template <class T>
inline constexpr bool has_devices = !std::is_same_v<T, WithTorchDevice<T>>;

// Converts between T and WithTorchDevice<T>.
template <class To, class From>
To with_devices(const From& value) {
  if constexpr (requires { value.has_value(); }) {
    return value ? To(with_devices<typename To::value_type>(*value)) : To();
  } else if constexpr (requires { value.begin(); }) {
    To list;
    for (const auto& one : value) {
      list.push_back(with_devices<typename To::value_type>(one));
    }
    return list;
  } else {
    return value;
  }
}

}  // namespace interop
