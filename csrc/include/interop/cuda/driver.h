// The part of the CUDA driver API that kernels compiled at run time use. Requires no CUDA header, and no CUDA library
// at link time: the driver is loaded at its first use. So code that includes this builds and imports everywhere.
#pragma once

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <string>

#include "interop/cuda/launch.h"

namespace interop::cuda {

// The types of cuda.h that are used, and its functions without the leading `cu`. Enumerations are ints in its ABI.
struct Driver {
  using CUlibrary = void*;
  using CUkernel = void*;
  using CUcontext = void*;
  using CUstream = void*;

  // Values of CUresult and of other enumerations.
  static constexpr int success = 0;
  static constexpr int invalid_value = 1;
  static constexpr int jit_error_log_buffer = 5;
  static constexpr int jit_error_log_buffer_size_bytes = 6;
  static constexpr int function_max_dynamic_shared_size_bytes = 8;
  static constexpr int stream_capture_status_none = 0;
  static constexpr int stream_capture_mode_relaxed = 2;

  int (*Init)(unsigned flags);
  int (*GetErrorName)(int error, const char** name);
  int (*GetErrorString)(int error, const char** text);
  int (*CtxGetCurrent)(CUcontext* context);
  int (*CtxSetCurrent)(CUcontext context);
  int (*CtxGetDevice)(int* device);
  int (*DeviceGet)(int* device, int ordinal);
  int (*DevicePrimaryCtxRetain)(CUcontext* context, int device);
  int (*DevicePrimaryCtxRelease)(int device);
  int (*LibraryLoadData)(
      CUlibrary* library,
      const void* code,
      int* jit_options,
      void** jit_values,
      unsigned jit_count,
      int* options,
      void** values,
      unsigned count);
  int (*LibraryUnload)(CUlibrary library);
  int (*LibraryGetKernel)(CUkernel* kernel, CUlibrary library, const char* name);
  int (*KernelSetAttribute)(int attribute, int value, CUkernel kernel, int device);
  int (*LaunchKernel)(
      CUkernel kernel,
      unsigned grid_x,
      unsigned grid_y,
      unsigned grid_z,
      unsigned block_x,
      unsigned block_y,
      unsigned block_z,
      unsigned shared_bytes,
      CUstream stream,
      void** parameters,
      void** extra);
  int (*StreamIsCapturing)(CUstream stream, int* status);
  int (*ThreadExchangeStreamCaptureMode)(int* mode);
  // Null before CUDA 12.4.
  int (*KernelGetParamInfo)(CUkernel kernel, size_t index, size_t* offset, size_t* size);

  // "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS, 700)"
  std::string describe(int error) const {
    const char *name = nullptr, *text = nullptr;
    const bool known = GetErrorName(error, &name) == success && GetErrorString(error, &text) == success;
    const std::string number = std::to_string(error);
    return known && name && text ? std::string(text) + " (" + name + ", " + number + ")"
                                 : "an error that the driver has no name for (" + number + ")";
  }
};

namespace detail {

inline Driver find_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fail(
        no_device, "CUDA kernels need NVIDIA's driver, and libcuda.so.1 does not load: " + std::string(dlerror()) +
                       "; check that nvidia-smi shows a GPU");
  }
  Driver driver{};
  const auto find = [library]<class F>(const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(library, name));
    return function != nullptr;
  };
  const auto need = [&]<class F>(const char* name, F& function) {
    if (!find(name, function)) {
      constexpr int insufficient_driver = 35;  // cudaErrorInsufficientDriver
      fail(
          insufficient_driver,
          std::string(
              "CUDA kernels that are compiled at run time need a driver for CUDA 12.0 or newer: this one has no ") +
              name);
    }
  };
  // Names without a suffix use the legacy default stream, as torch does. cuda.h maps the plain name to the `_v2` one.
  need("cuInit", driver.Init);
  need("cuGetErrorName", driver.GetErrorName);
  need("cuGetErrorString", driver.GetErrorString);
  need("cuCtxGetCurrent", driver.CtxGetCurrent);
  need("cuCtxSetCurrent", driver.CtxSetCurrent);
  need("cuCtxGetDevice", driver.CtxGetDevice);
  need("cuDeviceGet", driver.DeviceGet);
  need("cuDevicePrimaryCtxRetain", driver.DevicePrimaryCtxRetain);
  need("cuDevicePrimaryCtxRelease_v2", driver.DevicePrimaryCtxRelease);
  need("cuLibraryLoadData", driver.LibraryLoadData);
  need("cuLibraryUnload", driver.LibraryUnload);
  need("cuLibraryGetKernel", driver.LibraryGetKernel);
  need("cuKernelSetAttribute", driver.KernelSetAttribute);
  need("cuLaunchKernel", driver.LaunchKernel);
  need("cuStreamIsCapturing", driver.StreamIsCapturing);
  need("cuThreadExchangeStreamCaptureMode", driver.ThreadExchangeStreamCaptureMode);
  find("cuKernelGetParamInfo", driver.KernelGetParamInfo);
  if (const int error = driver.Init(0)) {
    fail(error, "NVIDIA's driver cannot be used: " + driver.describe(error));
  }
  return driver;
}

}  // namespace detail

// Each call raises torch.AcceleratorError if there is no driver: it may be missing for good reasons.
inline const Driver& driver() {
  static const Driver found = detail::find_driver();
  return found;
}

}  // namespace interop::cuda
