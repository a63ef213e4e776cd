// The host side of a kernel launch: selects the device of a tensor and its current stream. Needs no CUDA header and
// links to no CUDA library, because torch's generic interface for devices, in libc10, finds the running torch's
// devices. So code that includes this header compiles, links and imports with a torch without CUDA too.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>

#include <optional>
#include <string>
#include <utility>

#include "interop/cuda/check.h"
#include "interop/cuda/host_device.h"
#include "interop/device_guard.h"
#include "interop/stream.h"

// From the CUDA runtime that the module's kernels link to: interop/cuda/launch.cuh defines them in each .cu file. A
// module without kernels of its own lacks them.
extern "C" {
__attribute__((weak)) const char* interop_cuda_error_name(int code);
__attribute__((weak)) const char* interop_cuda_error_text(int code);
}

namespace interop::cuda {

using interop::detail::no_device;

// A hint for errors that the reported launch may not have caused.
constexpr const char* perhaps_an_earlier_kernel =
    ". Kernels run after their launch has returned, so an earlier one may have caused it; CUDA_LAUNCH_BLOCKING=1 shows "
    "which";

// cudaErrorIllegalAddress: from this value on, the errors of cudaError_t come from running kernels.
constexpr int first_of_running_kernels = 700;

// Raises torch.AcceleratorError with `code` as its `error_code`.
[[noreturn]] inline void fail(int code, const std::string& message) {
  interop::detail::raise_accelerator_error(code, message);
}

// Makes a device current for the lifetime of the object, and provides the device's current stream.
//
//   cdef Launch launch = Launch(x)
//   launch.check(my_kernel(..., launch.stream()), b"my_kernel")
//
// Like all our scoped objects, it takes effect on assignment, because Cython default-constructs a C++ local. It never
// synchronises and allocates nothing, so a CUDA graph can capture the launch.
class Launch {
 public:
  Launch() = default;
  explicit Launch(const c10::Device& device) noexcept : device_(device) {}
  // The device of a tensor.
  explicit Launch(const at::TensorBase& tensor) noexcept
      : device_(tensor.defined() ? tensor.device() : c10::Device(c10::kMeta)) {}
  Launch(const Launch&) = delete;
  Launch(Launch&&) = delete;

  // Errors with the device are raised here, because Cython keeps the result of a throwing constructor in a temporary.
  Launch& operator=(Launch&& request) {
    guard_.reset();
    device_ = request.device_;
    if (device_) {
      TORCH_CHECK_VALUE(
          device_->is_cuda(), "a CUDA kernel must be launched on a CUDA device, got ", *device_,
          "; call check_device(tensor, \"name\") first, which names the wrong argument");
      const auto& devices = interop::detail::devices(c10::kCUDA, "a CUDA kernel cannot be launched");
      guard_.emplace(*device_);
      // The guard has resolved a device without an index to the current one.
      stream_ = interop::detail::native_handle(devices, devices.getStream(guard_->current_device()));
    }
    return *this;
  }

  // The cudaStream_t. NULL is valid: it is CUDA's default stream.
  void* stream() const {
    TORCH_CHECK(guard_, "a Launch must be assigned to a variable before its stream is used");
    return stream_;
  }

  // Raises for an error of a launcher: a cudaError_t other than 0, or a code of host_device.h.
  void check(int error, const char* kernel) const {
    if (error == 0) {
      return;
    }
    TORCH_CHECK_TYPE(
        error != unsupported_dtype, "kernel ", kernel,
        " is not compiled for the dtype of its tensors; convert them with .to(torch.float32), or add the type to the "
        "list in its .cu file");
    TORCH_CHECK_VALUE(
        error != no_operands, "kernel ", kernel,
        " was given an Elementwise without operands; assign it first: e = Elementwise(x, ...)");
    TORCH_CHECK_VALUE(
        error != wrong_number_of_inputs, "kernel ", kernel,
        " takes a different number of values than its Elementwise has inputs");
    const bool known = &interop_cuda_error_name != nullptr && &interop_cuda_error_text != nullptr;
    fail(
        error, std::string("CUDA error at the launch of ") + kernel + ": " +
                   (known ? std::string(interop_cuda_error_text(error)) + " (" + interop_cuda_error_name(error) + ", "
                          : std::string("see cudaError_t in CUDA's documentation (")) +
                   std::to_string(error) + ")" + (error < first_of_running_kernels ? "" : perhaps_an_earlier_kernel));
  }

 private:
  std::optional<c10::Device> device_;
  std::optional<c10::DeviceGuard> guard_;
  void* stream_ = nullptr;
};

}  // namespace interop::cuda
