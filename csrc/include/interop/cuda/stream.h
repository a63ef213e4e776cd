// c10::cuda::CUDAStream in a form that Cython can hold in a local variable, and the functions that return streams.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <torch/headeronly/version.h>

#include <utility>

#include "interop/cuda/compiled.h"
#include "interop/stream.h"

#ifdef INTEROP_WITH_CUDA
#include <c10/cuda/CUDAStream.h>

#include <tuple>
#endif

struct CUstream_st;

namespace interop::cuda {

// The same name as in CUDA's own headers.
using cudaStream_t = CUstream_st*;

// A stream of a CUDA device.
class CUDAStream : public Stream {
 public:
  CUDAStream() noexcept = default;
  explicit CUDAStream(const Stream& stream) : Stream(stream) {
    detail::check_cuda(device(), "a CUDAStream");
  }

#ifdef INTEROP_WITH_CUDA
  // NOLINTNEXTLINE(google-explicit-constructor): what torch's own functions take
  operator c10::cuda::CUDAStream() const {
    return c10::cuda::CUDAStream(static_cast<c10::Stream>(*this));
  }
#endif

  cudaStream_t stream() const {
#if defined(INTEROP_WITH_CUDA) && TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 11
    detail::existing(device_index(), "there is no CUDA stream");
    return static_cast<c10::cuda::CUDAStream>(*this).stream();
#else
    return static_cast<cudaStream_t>(native_handle());
#endif
  }
  Stream unwrap() const {
    return *this;
  }
  // A lower number is a higher priority.
  int priority() const {
    [[maybe_unused]] const c10::DeviceIndex index = device_index();
#ifdef INTEROP_WITH_CUDA
    detail::existing(index, "a stream has no priority");
    return static_cast<c10::cuda::CUDAStream>(*this).priority();
#else
    detail::not_compiled("a stream has no priority");
#endif
  }
  // The lowest and the highest priority.
  static std::pair<int, int> priority_range() {
#ifdef INTEROP_WITH_CUDA
    detail::existing(-1, "streams have no priorities");
    const auto [least, greatest] = c10::cuda::CUDAStream::priority_range();
    return {least, greatest};
#else
    detail::not_compiled("streams have no priorities");
#endif
  }
};

// For the current device, unless the index of another one is given.
inline CUDAStream getCurrentCUDAStream(c10::DeviceIndex device = -1) {
  return CUDAStream(current_stream(detail::make_device(device)));
}
inline CUDAStream getDefaultCUDAStream(c10::DeviceIndex device = -1) {
  return CUDAStream(default_stream(detail::make_device(device)));
}
inline CUDAStream getStreamFromPool(bool is_high_priority = false, c10::DeviceIndex device = -1) {
  return CUDAStream(stream_from_pool(detail::make_device(device), is_high_priority));
}

// A stream that another library created. That library owns it, and must keep it alive as long as it is used.
inline CUDAStream getStreamFromExternal(
    [[maybe_unused]] cudaStream_t stream, [[maybe_unused]] c10::DeviceIndex device) {
#ifdef INTEROP_WITH_CUDA
  const c10::Device existing = detail::existing(device, "a stream of another library cannot be used");
  return CUDAStream(c10::cuda::getStreamFromExternal(stream, existing.index()).unwrap());
#else
  detail::not_compiled("a stream of another library cannot be used");
#endif
}

inline void setCurrentCUDAStream(const CUDAStream& stream) {
  set_current_stream(stream);
}

}  // namespace interop::cuda
