// See cuda.h.
#include "cuda.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/util/Exception.h>
#include <torch/csrc/utils/device_lazy_init.h>

#include "interop/event.h"
#include "interop/stream.h"

namespace interop::bridges {

namespace {

constexpr int64_t legacy_default = 1;
constexpr int64_t per_thread_default = 2;

// c10 uses the handle of an external stream as its id. c10's own ids are odd and handles are even. So is 2, which
// CUDA accepts as the handle of the per-thread default stream.
Stream stream_of(const c10::Device& device, int64_t number) {
  return number == legacy_default ? default_stream(device) : Stream(c10::Stream(c10::Stream::UNSAFE, device, number));
}

void wait(const Stream& waiting, const Stream& awaited) {
  Event done;
  done.record(awaited);
  waiting.wait(done);
}

}  // namespace

void initialise_cuda() {
  if (at::detail::getCUDAHooks().hasCUDA()) {
    torch::utils::device_lazy_init(c10::kCUDA);
  }
}

c10::Device device_of_pointer(void* pointer) {
  try {
    return at::detail::getCUDAHooks().getDeviceFromPtr(pointer);
  } catch (const c10::Error& error) {
    TORCH_CHECK_VALUE(
        false, "argument 'obj' must point to memory of a CUDA device, got the address ", pointer,
        ", for which CUDA reports: ", error.what_without_backtrace());
  }
}

void check_stream(int64_t number, const char* argument) {
  TORCH_CHECK_VALUE(
      number != 0, argument,
      " must not be 0, which is ambiguous; the legacy default stream is 1, the per-thread default stream 2");
  TORCH_CHECK_VALUE(
      number == legacy_default || (number >= per_thread_default && number % 2 == 0), argument,
      " must be 1, 2 or the handle of a stream, got ", number);
}

int64_t current_stream_number(const c10::Device& device) {
  const auto handle = reinterpret_cast<intptr_t>(current_stream(device).native_handle());
  return handle == 0 ? legacy_default : handle;
}

void let_stream_wait(const c10::Device& device, int64_t number) {
  if (number != current_stream_number(device)) {
    wait(stream_of(device, number), current_stream(device));
  }
}

void wait_for_stream(const c10::Device& device, int64_t number) {
  if (number != current_stream_number(device)) {
    wait(current_stream(device), stream_of(device, number));
  }
}

}  // namespace interop::bridges
