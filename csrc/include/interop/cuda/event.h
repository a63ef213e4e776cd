// at::cuda::CUDAEvent without its header, which up to torch 2.10 needs the headers of cuBLAS and cuSPARSE.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/util/Exception.h>

#include "interop/cuda/compiled.h"
#include "interop/cuda/stream.h"
#include "interop/event.h"

struct CUevent_st;

namespace interop::cuda {

// CUDA's own headers define the same type.
using cudaEvent_t = CUevent_st*;

// The flags that torch's generic events support. CUDA's headers have macros for them.
constexpr unsigned int event_default = 0;
constexpr unsigned int event_disable_timing = 2;

class CUDAEvent : public Event {
 public:
  CUDAEvent() noexcept : CUDAEvent(c10::EventFlag::PYTORCH_DEFAULT) {}
  explicit CUDAEvent(unsigned int flags) : CUDAEvent(flag_of(flags)) {}

  using Event::record;
  // Records on the current stream of the current device.
  void record() {
    record(getCurrentCUDAStream());
  }
  float elapsed_time(const CUDAEvent& other) const {
    return static_cast<float>(elapsedTime(other));
  }
  bool isCreated() const noexcept {
    return eventId() != nullptr;
  }
  // Null before the first record().
  cudaEvent_t event() const noexcept {
    return static_cast<cudaEvent_t>(eventId());
  }

 private:
  explicit CUDAEvent(c10::EventFlag flag) noexcept : Event(c10::kCUDA, flag) {}

  static c10::EventFlag flag_of(unsigned int flags) {
    TORCH_CHECK_VALUE(
        flags == event_default || flags == event_disable_timing,
        "the flags of a CUDAEvent must be cudaEventDefault, for one with timing, or cudaEventDisableTiming, got ",
        flags);
    return flags == event_default ? c10::EventFlag::BACKEND_DEFAULT : c10::EventFlag::PYTORCH_DEFAULT;
  }
};

}  // namespace interop::cuda
