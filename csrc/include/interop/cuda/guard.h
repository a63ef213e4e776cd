// The guards of interop/device_guard.h and interop/stream_guard.h for CUDA. They take the index of a device, and
// reject devices of other types. Those headers say where a guard begins and ends.
#pragma once

#include <c10/core/Device.h>

#include <optional>

#include "interop/cuda/compiled.h"
#include "interop/cuda/stream.h"
#include "interop/device_guard.h"
#include "interop/stream_guard.h"

namespace interop::cuda {

class CUDAGuard : public DeviceGuard {
 public:
  CUDAGuard() = default;
  explicit CUDAGuard(c10::DeviceIndex index) noexcept : index_(index) {}
  explicit CUDAGuard(const c10::Device& device) noexcept : device_(device) {}

  CUDAGuard& operator=(CUDAGuard&& request) {
    reset();
    if (request.index_) {
      set_index(*request.index_);
    } else if (request.device_) {
      reset_device(*request.device_);
    }
    return *this;
  }

  void reset_device(const c10::Device& device) {
    detail::check_cuda(device, "the device of a CUDAGuard");
    DeviceGuard::reset_device(device);
  }
  void set_device(const c10::Device& device) {
    reset_device(device);
  }
  void set_index(c10::DeviceIndex index) {
    reset_device(detail::make_device(index));
  }

 private:
  std::optional<c10::DeviceIndex> index_;
  std::optional<c10::Device> device_;
};

class CUDAStreamGuard : public StreamGuard {
 public:
  CUDAStreamGuard() = default;
  explicit CUDAStreamGuard(const Stream& stream) noexcept : stream_(stream) {}

  CUDAStreamGuard& operator=(CUDAStreamGuard&& request) {
    reset();
    if (request.stream_) {
      reset_stream(*request.stream_);
    }
    return *this;
  }

  void reset_stream(const Stream& stream) {
    detail::check_cuda(stream.device(), "the stream of a CUDAStreamGuard");
    StreamGuard::reset_stream(stream);
  }
  CUDAStream original_stream() const {
    return CUDAStream(StreamGuard::original_stream());
  }
  CUDAStream current_stream() const {
    return CUDAStream(StreamGuard::current_stream());
  }

 private:
  std::optional<Stream> stream_;
};

}  // namespace interop::cuda
