// Whether a CUDA graph is capturing: c10/cuda/CUDAGraphsC10Utils.h and ATen/cuda/CUDAGraphsUtils.cuh. ATen's header
// needs those of cuBLAS and others.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <string>

#include "interop/cuda/compiled.h"
#include "interop/device_guard.h"

#ifdef INTEROP_WITH_CUDA
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#endif

namespace interop::cuda {

// torch's enum, with a name for `None` that Cython accepts. Cython cannot rename the values of an enum class.
enum class CaptureStatus : int { None_ = 0, Active = 1, Invalidated = 2 };

// The status of the current stream of the current device. Creates a context on the device if there is none.
inline CaptureStatus currentStreamCaptureStatusMayInitCtx() {
#ifdef INTEROP_WITH_CUDA
  detail::existing(-1, "nothing can be captured");
  return static_cast<CaptureStatus>(c10::cuda::currentStreamCaptureStatusMayInitCtx());
#else
  detail::not_compiled("nothing can be captured");
#endif
}

// The same, but creates no context.
inline CaptureStatus currentStreamCaptureStatus() {
#ifdef INTEROP_WITH_CUDA
  const c10::Device current = detail::existing(-1, "nothing can be captured");
  return c10::cuda::hasPrimaryContext(current.index()) ? currentStreamCaptureStatusMayInitCtx() : CaptureStatus::None_;
#else
  detail::not_compiled("nothing can be captured");
#endif
}

// Raises during a capture. `attempt` names the operation that cannot be captured.
inline void assertNotCapturing(const std::string& attempt) {
  const CaptureStatus status = currentStreamCaptureStatus();
  TORCH_CHECK(
      status == CaptureStatus::None_, attempt, " during CUDA graph capture",
      status == CaptureStatus::Active ? "; do it before the capture begins" : ", which an error has ended");
}

}  // namespace interop::cuda
