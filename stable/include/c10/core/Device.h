// A device: type and index.
#pragma once

#include <cstdint>
#include <string>

#include "interop/stable/enumerators.h"
#include "interop/stable/enums.h"
#include "interop/stable/errors.h"
#include "interop/stable/shim.h"

namespace c10 {

using DeviceIndex = int8_t;

class Device final {
 public:
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {
    if (index < -1 || (type == kCPU && index > 0)) {
      interop::stable::raise(
          interop::stable::Kind::runtime, "Device index must be -1 or non-negative, and 0 or -1 for the CPU, got ",
          static_cast<int>(index));
    }
  }
  // Parses the text as torch does: "cpu", "cuda:1".
  explicit Device(const std::string& text) {
    uint32_t type = 0;
    int32_t index = 0;
    INTEROP_CALL(torch_parse_device_string, text.c_str(), &type, &index);
    type_ = static_cast<DeviceType>(type);
    index_ = static_cast<DeviceIndex>(index);
  }

  DeviceType type() const noexcept {
    return type_;
  }
  DeviceIndex index() const noexcept {
    return index_;
  }
  bool has_index() const noexcept {
    return index_ != -1;
  }
  bool is_cpu() const noexcept {
    return type_ == kCPU;
  }
  bool is_cuda() const noexcept {
    return type_ == kCUDA;
  }
  bool is_meta() const noexcept {
    return type_ == kMeta;
  }
  std::string str() const {
    return name() + (has_index() ? ":" + std::to_string(index_) : "");
  }
  friend bool operator==(const Device&, const Device&) noexcept = default;

 private:
  std::string name() const {
    switch (type_) {
#define INTEROP_NAME(type, python, number) \
  case k##type:                            \
    return #python;
      INTEROP_DEVICE_TYPES(INTEROP_NAME)
#undef INTEROP_NAME
      default:
        interop::stable::raise(
            interop::stable::Kind::runtime, "device type ", static_cast<int>(type_), " has no name here");
    }
  }

  DeviceType type_;
  DeviceIndex index_;
};

}  // namespace c10

namespace at {
using namespace c10;
}
