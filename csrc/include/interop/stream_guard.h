// The current stream of a device, for a while.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/Exception.h>

#include <optional>

#include "interop/device_guard.h"
#include "interop/stream.h"

namespace interop {

// Makes a stream's device current, and the stream current there, for as long as it lives:
//
//   cdef StreamGuard _guard = StreamGuard(stream_from_pool(x.device(), False))
//
// As with all scoped objects of ours, it begins with the assignment. It must end on the thread that began it.
class StreamGuard {
 public:
  StreamGuard() = default;
  explicit StreamGuard(const Stream& stream) noexcept : requested_(stream) {}
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard(StreamGuard&&) = delete;

  // What is wrong with the stream is raised here: Cython keeps what a constructor makes in a temporary.
  StreamGuard& operator=(StreamGuard&& request) {
    reset();
    if (request.requested_) {
      reset_stream(*request.requested_);
    }
    return *this;
  }

  // Another stream than the one that it was begun with; begins if it has not begun.
  void reset_stream(const Stream& stream) {
    reset();
    detail::devices_of(stream, "a stream cannot be made current");
    guard_.emplace(stream);
  }

  // Ends before the function does.
  void reset() noexcept {
    guard_.reset();
  }

  // What was current before it began: the stream of the device that was current then.
  Stream original_stream() const {
    return begun().original_stream();
  }
  // What it has made current.
  Stream current_stream() const {
    return begun().current_stream();
  }
  c10::Device original_device() const {
    return begun().original_device();
  }
  c10::Device current_device() const {
    return begun().current_device();
  }

 private:
  const c10::StreamGuard& begun() const {
    TORCH_CHECK(guard_, "this guard has not begun; assign it: guard = StreamGuard(stream)");
    return *guard_;
  }

  std::optional<Stream> requested_;
  std::optional<c10::StreamGuard> guard_;
};

}  // namespace interop
