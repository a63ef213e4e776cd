// Changes the current stream of a device within a scope.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/Exception.h>

#include <optional>

#include "interop/device_guard.h"
#include "interop/stream.h"

namespace interop {

// Makes a stream's device current, and the stream current on that device, for its own lifetime:
//
//   cdef StreamGuard _guard = StreamGuard(stream_from_pool(x.device(), False))
//
// Like all our scoped objects, it takes effect on assignment. It must end on the thread that began it.
class StreamGuard {
 public:
  StreamGuard() = default;
  explicit StreamGuard(const Stream& stream) noexcept : requested_(stream) {}
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard(StreamGuard&&) = delete;

  // Errors with the stream are raised here, because Cython keeps the result of a throwing constructor in a temporary.
  StreamGuard& operator=(StreamGuard&& request) {
    reset();
    if (request.requested_) {
      reset_stream(*request.requested_);
    }
    return *this;
  }

  // Switches to another stream. Begins the guard if it has not begun.
  void reset_stream(const Stream& stream) {
    reset();
    detail::devices_of(stream, "a stream cannot be made current");
    guard_.emplace(stream);
  }

  // Ends the guard early.
  void reset() noexcept {
    guard_.reset();
  }

  // The stream that was current on the original device before the guard began.
  Stream original_stream() const {
    return begun().original_stream();
  }
  // The stream that it has made current.
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
