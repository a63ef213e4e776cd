// c10::Stream in a form that Cython can hold in a local variable, and the functions that return streams. Works for
// devices of any type, through torch's generic interface.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/record_stream_ops.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>
#include <torch/headeronly/version.h>

#include <cstdint>
#include <optional>

#include "interop/device_guard.h"

namespace interop {

namespace detail {

// The interface for the stream's type of device. Raises if there is no such device.
inline const c10::impl::DeviceGuardImplInterface& devices_of(const c10::Stream& stream, const char* what) {
  const auto& found = devices(stream.device_type(), what);
  TORCH_CHECK_VALUE(
      is_host(stream.device_type()) || stream.device().has_index(), what, ": the index of its device is missing");
  existing(found, stream.device());
  return found;
}

// The backend's handle of the stream: a cudaStream_t for CUDA.
inline void* native_handle(
    [[maybe_unused]] const c10::impl::DeviceGuardImplInterface& devices, const c10::Stream& stream) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !is_host(stream.device_type()), "the stream of ", stream.device(), " has no handle; only that of a GPU has one");
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11
  return devices.getStreamNativeHandle(stream);
#else
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "launching CUDA kernels needs torch >= 2.11: " TORCH_VERSION
             " does not give a stream's handle; "
             "CUDAStream.stream() of c10.cuda does, in a module that was compiled for a torch with CUDA");
#endif
}

}  // namespace detail

// Converts to and from c10::Stream, which has no default constructor. A default-constructed Stream is undefined and
// raises when used, because waiting for another stream in its place would be wrong.
class Stream {
 public:
  Stream() noexcept = default;
  // NOLINTNEXTLINE(google-explicit-constructor): what c10's functions return
  Stream(const c10::Stream& stream) noexcept : stream_(stream) {}
  static Stream unpack3(c10::StreamId id, c10::DeviceIndex index, c10::DeviceType type) {
    TORCH_CHECK_VALUE(c10::isValidDeviceType(type), "there is no device type ", static_cast<int>(type));
    return c10::Stream(c10::Stream::UNSAFE, detail::make_device(type, index), id);
  }

  // NOLINTNEXTLINE(google-explicit-constructor): what ATen's functions take
  operator c10::Stream() const {
    return get();
  }

  bool defined() const noexcept {
    return stream_.has_value();
  }
  c10::Device device() const {
    return get().device();
  }
  c10::DeviceType device_type() const {
    return get().device_type();
  }
  c10::DeviceIndex device_index() const {
    return get().device_index();
  }
  c10::StreamId id() const {
    return get().id();
  }

  void* native_handle() const {
    return detail::native_handle(devices(), get());
  }
  // Whether all work queued on it is done.
  bool query() const {
    return devices().queryStream(get());
  }
  void synchronize() const {
    devices().synchronizeStream(get());
  }
  // Work queued on it from now on waits for the event. It does not wait if the event was never recorded.
  template <class Event>
  void wait(const Event& event) const {
    event.block(*this);
  }
  // Whether a graph is capturing it.
  bool is_capturing() const {
    const auto& devices = this->devices();
    if (detail::is_host(devices.type())) {  // torch 2.12 raises for it
      return false;
    }
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 12
    return devices.isStreamCapturing(get());
#else
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, "is_capturing() needs torch >= 2.12, this is " TORCH_VERSION
               "; for CUDA's current stream, call currentStreamCaptureStatus() of ATen.cuda");
    return false;
#endif
  }

  friend bool operator==(const Stream& a, const Stream& b) noexcept {
    return a.stream_ == b.stream_;
  }
  friend bool operator!=(const Stream& a, const Stream& b) noexcept {
    return !(a == b);
  }

 private:
  const c10::Stream& get() const {
    TORCH_CHECK_VALUE(stream_, "the stream is undefined; take one with current_stream(device)");
    return *stream_;
  }
  const c10::impl::DeviceGuardImplInterface& devices() const {
    return detail::devices_of(get(), "a stream cannot be used");
  }

  std::optional<c10::Stream> stream_;
};

// The stream of a device on which the calling thread's operations run. The CPU has one stream, which all of these
// functions return.
inline Stream current_stream(const c10::Device& device) {
  const auto& devices = detail::devices(device.type(), "there is no current stream");
  return devices.getStream(detail::existing(devices, device));
}

// The stream of a device that is current by default.
inline Stream default_stream(const c10::Device& device) {
  if (detail::is_host(device.type())) {
    return current_stream(device);
  }
  const auto& devices = detail::devices(device.type(), "there is no default stream");
  return devices.getDefaultStream(detail::existing(devices, device));
}

// A stream other than the default one. There is a limited number of them, which torch hands out in turn.
inline Stream stream_from_pool(const c10::Device& device, bool high_priority = false) {
  if (detail::is_host(device.type())) {
    return current_stream(device);
  }
  const auto& devices = detail::devices(device.type(), "there is no pool of streams");
  return devices.getStreamFromGlobalPool(detail::existing(devices, device), high_priority);
}

// Makes a stream the calling thread's current one on its device, for good, and leaves the current device unchanged.
// To restore the previous stream automatically, use a StreamGuard.
inline void set_current_stream(const Stream& stream) {
  detail::devices_of(stream, "a stream cannot be made current").exchangeStream(stream);
}

// Once the tensor's memory is freed, the allocator reuses it only after all work queued on the stream by then.
inline void record_stream(const at::TensorBase& tensor, const Stream& stream) {
  TORCH_CHECK_TYPE(tensor.defined(), "argument 'tensor' must be a tensor, got an undefined one (None)");
  at::Tensor recorded(tensor);
  at::_ops::record_stream::call(recorded, stream);
}

}  // namespace interop
