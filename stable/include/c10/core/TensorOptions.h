// dtype, layout, device and flags for a new tensor.
#pragma once

#include <optional>

#include "c10/core/Device.h"
#include "c10/core/Layout.h"
#include "c10/core/MemoryFormat.h"
#include "c10/core/ScalarType.h"

namespace caffe2 {

// The type that t.dtype() returns in torch's C++: an element type.
class TypeMeta {
 public:
  TypeMeta() noexcept = default;
  explicit TypeMeta(c10::ScalarType type) noexcept : type_(type) {}
  c10::ScalarType toScalarType() const noexcept {
    return type_;
  }
  size_t itemsize() const {
    return c10::elementSize(type_);
  }
  friend bool operator==(const TypeMeta&, const TypeMeta&) noexcept = default;

 private:
  c10::ScalarType type_ = c10::kUndefined;
};

}  // namespace caffe2

namespace c10 {

class TensorOptions {
 public:
  TensorOptions() noexcept = default;
  TensorOptions(ScalarType dtype) noexcept : dtype_(dtype) {}
  TensorOptions(Layout layout) noexcept : layout_(layout) {}
  TensorOptions(DeviceType device) : device_(Device(device)) {}
  TensorOptions(Device device) noexcept : device_(device) {}
  // From interop::Device, the type of Cython's variables, because C++ does not chain two conversions implicitly.
  template <class D>
    requires requires(const D& device) { device.operator Device(); }
  TensorOptions(const D& device) noexcept : TensorOptions(device.operator Device()) {}
  TensorOptions(MemoryFormat memory_format) noexcept : memory_format_(memory_format) {}

#define INTEROP_OPTION(type, name)                         \
  TensorOptions name(type value) const noexcept {          \
    TensorOptions result(*this);                           \
    result.name##_ = value;                                \
    return result;                                         \
  }                                                        \
  const std::optional<type>& name##_opt() const noexcept { \
    return name##_;                                        \
  }
  INTEROP_OPTION(ScalarType, dtype)
  INTEROP_OPTION(Layout, layout)
  INTEROP_OPTION(Device, device)
  INTEROP_OPTION(bool, requires_grad)
  INTEROP_OPTION(bool, pinned_memory)
  INTEROP_OPTION(MemoryFormat, memory_format)
#undef INTEROP_OPTION
  TensorOptions device(DeviceType type) const {
    return device(Device(type));
  }

  Device device() const {
    return device_.value_or(Device(kCPU));
  }
  Layout layout() const noexcept {
    return layout_.value_or(kStrided);
  }
  bool requires_grad() const noexcept {
    return requires_grad_.value_or(false);
  }
  bool pinned_memory() const noexcept {
    return pinned_memory_.value_or(false);
  }

 private:
  std::optional<ScalarType> dtype_;
  std::optional<Layout> layout_;
  std::optional<Device> device_;
  std::optional<bool> requires_grad_;
  std::optional<bool> pinned_memory_;
  std::optional<MemoryFormat> memory_format_;
};

}  // namespace c10

namespace at {
using namespace c10;
}
