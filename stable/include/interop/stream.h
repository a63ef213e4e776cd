// The current stream of the accelerator that torch was built for.
#pragma once

#include <cstdint>

#include "interop/device.h"
#include "interop/stable/shim.h"

namespace interop {

// The stream that torch's operators use for a device on this thread, as the backend's own object: a cudaStream_t for
// CUDA. Null for the CPU, and for CUDA's default stream.
inline void* current_native_stream(const Device& device) {
  if (device.is_cpu() || device.is_meta()) {
    return nullptr;
  }
  if (!stable::shim.torch_stream_native_handle) {
    stable::raise(
        stable::Kind::not_implemented, "torch's C interface hands on streams from torch 2.13 on; upgrade torch");
  }
  StreamHandle stream = nullptr;
  void* native = nullptr;
  INTEROP_CALL(aoti_torch_get_current_stream, device.index(), &stream);
  const AOTITorchError failed = stable::shim.torch_stream_native_handle(stream, &native);
  stable::shim.aoti_torch_delete_stream(stream);
  if (failed) {
    stable::fail("torch_stream_native_handle");
  }
  return native;
}

}  // namespace interop
