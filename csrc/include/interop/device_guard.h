// Devices of any type, and the current device. Needs no header and no library of a backend: torch's generic interface
// for devices, in libc10, finds what the running torch has. So code that includes this compiles, links and imports
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

// The CPU and the meta device: one device without an index, whose only stream has finished when a call returns.
inline bool is_host(c10::DeviceType type) noexcept {
  return type == c10::kCPU || type == c10::kMeta;
}

// torch's interface for devices of a type; null if there are none.
inline const c10::impl::DeviceGuardImplInterface* find_devices(c10::DeviceType type) noexcept {
  const auto* found = c10::impl::device_guard_impl_registry[static_cast<size_t>(type)].load();
  if (found == nullptr || is_host(type)) {
    return found;
  }
  // If a torch with CUDA finds no device, FakeTensorMode leaves behind an interface that claims to have eight.
  const bool fake = typeid(*found) == typeid(c10::impl::FakeGuardImpl<c10::kCUDA>);
  return fake || found->deviceCount() == 0 ? nullptr : found;
}

// The same, but raises if there are none. `what` says what is then not possible.
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

// Up to torch 2.11, the constructor of c10::Device fails an assertion for a wrong index, and asks to report a bug.
inline c10::Device make_device(c10::DeviceType type, c10::DeviceIndex index) {
  TORCH_CHECK_VALUE(
      index >= -1, "there is no device ", c10::DeviceTypeName(type, true), ":", static_cast<int>(index),
      "; the index is 0 or more, or -1 for the current device");
  return {type, index};
}

// The device with its index. A device without an index stands for the current one. Raises if there is no such device.
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

// The number of devices of a type that torch can use. A problem with them is no error, as in torch's own function.
inline c10::DeviceIndex device_count(c10::DeviceType type) noexcept {
  const auto* found = detail::find_devices(type);
  return found == nullptr ? c10::DeviceIndex{0} : found->deviceCount();
}

// The calling thread's current device of a type.
inline c10::Device current_device(c10::DeviceType type) {
  return detail::devices(type, "there is no current device").getDevice();
}

// Makes a device the calling thread's current one, permanently. To restore the previous device, use a DeviceGuard.
inline void set_device(const c10::Device& device) {
  const auto& devices = detail::devices(device.type(), "a device cannot be made current");
  devices.setDevice(detail::existing(devices, device));
}

// Waits until the device has finished all its work. The CPU always has.
inline void device_synchronize(const c10::Device& device) {
  const auto& devices = detail::devices(device.type(), "a device cannot be waited for");
  if (!detail::is_host(device.type())) {
    devices.synchronizeDevice(detail::existing(devices, device).index());
  }
}

// Makes a device current for the guard's lifetime:
//
//   cdef DeviceGuard _guard = DeviceGuard(x.device())
//
// Like all our scoped objects, the guard begins with the assignment, because Cython default-constructs a C++ local.
// It must end on the thread that began it.
class DeviceGuard {
 public:
  DeviceGuard() = default;
  explicit DeviceGuard(const c10::Device& device) noexcept : requested_(device) {}
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard(DeviceGuard&&) = delete;

  // The assignment raises errors, not the constructor, whose result Cython keeps in a temporary.
  DeviceGuard& operator=(DeviceGuard&& request) {
    reset();
    if (request.requested_) {
      reset_device(*request.requested_);
    }
    return *this;
  }

  // Switches to another device. Begins the guard if it has not begun.
  void reset_device(const c10::Device& device) {
    reset();
    const auto& devices = detail::devices(device.type(), "a device cannot be made current");
    guard_.emplace(detail::existing(devices, device));
  }
  void set_index(c10::DeviceIndex index) {
    reset_device(detail::make_device(current_device().type(), index));
  }

  // Ends the guard before the function ends.
  void reset() noexcept {
    guard_.reset();
  }

  // The device that was current before, and will be again.
  c10::Device original_device() const {
    return begun().original_device();
  }
  // The device that the guard makes current.
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
