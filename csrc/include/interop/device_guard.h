// Devices of any type, and which of them is current. It needs no header and no library of a backend: torch's generic
// interface for devices, in libc10, finds what the running torch has. So what includes this compiles, links and imports
// with every build of torch.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/FakeGuardImpl.h>
#include <c10/util/Exception.h>
#include <torch/headeronly/version.h>

#include <optional>
#include <string>
#include <typeinfo>

namespace interop {

namespace detail {

// cudaErrorNoDevice
constexpr int no_device = 100;

// Raises torch.AcceleratorError, which has the code as its `error_code`.
[[noreturn]] inline void raise_accelerator_error(int code, const std::string& message) {
  throw c10::AcceleratorError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, code, message);
}

// The CPU and what has no memory: one device without an index, whose only stream is done when a call returns.
inline bool is_host(c10::DeviceType type) noexcept {
  return type == c10::kCPU || type == c10::kMeta;
}

// torch's interface for devices of a type; null where there are none.
inline const c10::impl::DeviceGuardImplInterface* find_devices(c10::DeviceType type) noexcept {
  const auto* found = c10::impl::device_guard_impl_registry[static_cast<size_t>(type)].load();
  if (found == nullptr || is_host(type)) {
    return found;
  }
  // Where a torch with CUDA finds no device, FakeTensorMode leaves behind an interface that claims to have eight.
  const bool fake = typeid(*found) == typeid(c10::impl::FakeGuardImpl<c10::kCUDA>);
  return fake || found->deviceCount() == 0 ? nullptr : found;
}

// The same; raises where there are none. `what` says what is not possible then.
inline const c10::impl::DeviceGuardImplInterface& devices(c10::DeviceType type, const char* what) {
  const auto* found = find_devices(type);
  if (found == nullptr) {
    const bool built = c10::impl::hasDeviceGuardImpl(type);
    const std::string name = c10::DeviceTypeName(type);
    raise_accelerator_error(
        no_device,
        std::string(what) + ": " +
            (!built ? "this torch (" TORCH_VERSION ") is built without " + name + "; install one with it"
                    : "torch finds no " + name + " device" +
                          (type == c10::kCUDA ? "; check that nvidia-smi shows one, that its driver is not older than "
                                                "torch's CUDA, and that CUDA_VISIBLE_DEVICES does not hide it"
                                              : "; check that its driver is installed")));
  }
  return *found;
}

// Up to torch 2.11 the constructor asserts what is wrong with an index, and asks to report a bug.
inline c10::Device make_device(c10::DeviceType type, c10::DeviceIndex index) {
  TORCH_CHECK_VALUE(
      index >= -1, "there is no device ", c10::DeviceTypeName(type, true), ":", static_cast<int>(index),
      "; the index is 0 or more, or -1 for the current device");
  return {type, index};
}

// The device with its index, which is the current one's where it has none. Raises where there is no such device.
inline c10::Device existing(const c10::impl::DeviceGuardImplInterface& devices, const c10::Device& device) {
  if (is_host(device.type())) {
    return device;
  }
  if (!device.has_index()) {
    return devices.getDevice();
  }
  TORCH_CHECK_VALUE(
      device.index() >= 0 && device.index() < devices.deviceCount(), "there is no device ", device,
      "; the last one is ", c10::Device(device.type(), static_cast<c10::DeviceIndex>(devices.deviceCount() - 1)));
  return device;
}

}  // namespace detail

// How many devices of a type torch can use. As with torch's own function, what is wrong with them is no error here.
inline c10::DeviceIndex device_count(c10::DeviceType type) noexcept {
  const auto* found = detail::find_devices(type);
  return found == nullptr ? c10::DeviceIndex{0} : found->deviceCount();
}

// The calling thread's current device of a type.
inline c10::Device current_device(c10::DeviceType type) {
  return detail::devices(type, "there is no current device").getDevice();
}

// Makes a device the calling thread's current one, for good. A DeviceGuard sets it back.
inline void set_device(const c10::Device& device) {
  const auto& devices = detail::devices(device.type(), "a device cannot be made current");
  devices.setDevice(detail::existing(devices, device));
}

// Waits until the device has done everything that it was given. On the CPU it already has.
inline void device_synchronize(const c10::Device& device) {
  const auto& devices = detail::devices(device.type(), "a device cannot be waited for");
  if (!detail::is_host(device.type())) {
    devices.synchronizeDevice(detail::existing(devices, device).index());
  }
}

// Makes a device current for as long as it lives:
//
//   cdef DeviceGuard _guard = DeviceGuard(x.device())
//
// As with all scoped objects of ours, it begins with the assignment, because Cython default-constructs a C++ local. It
// must end on the thread that began it.
class DeviceGuard {
 public:
  DeviceGuard() = default;
  explicit DeviceGuard(const c10::Device& device) noexcept : requested_(device) {}
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard(DeviceGuard&&) = delete;

  // What is wrong with the device is raised here: Cython keeps what a constructor makes in a temporary.
  DeviceGuard& operator=(DeviceGuard&& request) {
    reset();
    if (request.requested_) {
      reset_device(*request.requested_);
    }
    return *this;
  }

  // Another device than the one that it was begun with; begins if it has not begun.
  void reset_device(const c10::Device& device) {
    reset();
    const auto& devices = detail::devices(device.type(), "a device cannot be made current");
    guard_.emplace(detail::existing(devices, device));
  }
  void set_index(c10::DeviceIndex index) {
    reset_device(detail::make_device(current_device().type(), index));
  }

  // Ends before the function does.
  void reset() noexcept {
    guard_.reset();
  }

  // What was current before it began, and will be again.
  c10::Device original_device() const {
    return begun().original_device();
  }
  // What it has made current.
  c10::Device current_device() const {
    return begun().current_device();
  }

 private:
  const c10::DeviceGuard& begun() const {
    TORCH_CHECK(guard_, "this guard has not begun; assign it: guard = DeviceGuard(device)");
    return *guard_;
  }

  std::optional<c10::Device> requested_;
  std::optional<c10::DeviceGuard> guard_;
};

}  // namespace interop
