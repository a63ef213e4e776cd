// The properties of CUDA devices: ATen/cuda/CUDAContext.h, which needs the headers of cuBLAS, cuSPARSE and cuSOLVER.
// These functions need only the header of the CUDA runtime, so they are declared here.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>

#include "interop/cuda/compiled.h"
#include "interop/device_guard.h"

#ifdef INTEROP_WITH_CUDA
#include <cuda_runtime_api.h>

// Exported by libtorch_cuda.
namespace at::cuda {
cudaDeviceProp* getCurrentDeviceProperties();
cudaDeviceProp* getDeviceProperties(c10::DeviceIndex device);
int warp_size();
bool canDeviceAccessPeer(c10::DeviceIndex device, c10::DeviceIndex peer_device);
}  // namespace at::cuda
#endif

namespace interop::cuda {

#ifdef INTEROP_WITH_CUDA
using cudaDeviceProp = ::cudaDeviceProp;
#else
// The fields that are declared to Cython, so that code that uses them compiles. No object of this type exists.
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock, totalConstMem, sharedMemPerMultiprocessor, sharedMemPerBlockOptin;
  int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], major, minor;
  int multiProcessorCount, integrated, canMapHostMemory, concurrentKernels, ECCEnabled, pciBusID, pciDeviceID,
      pciDomainID;
  int asyncEngineCount, unifiedAddressing, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize;
  int maxThreadsPerMultiProcessor, maxBlocksPerMultiProcessor, regsPerMultiprocessor, managedMemory, isMultiGpuBoard;
  int concurrentManagedAccess, cooperativeLaunch;
};
#endif

// Whether torch finds a device. A problem with the devices is not an error.
inline bool is_available() noexcept {
  return interop::device_count(c10::kCUDA) > 0;
}

// torch's own record of the device, which it reads once per process.
inline const cudaDeviceProp* getDeviceProperties([[maybe_unused]] c10::DeviceIndex device) {
#ifdef INTEROP_WITH_CUDA
  return at::cuda::getDeviceProperties(detail::existing(device, "there are no properties").index());
#else
  detail::not_compiled("there are no properties");
#endif
}
inline const cudaDeviceProp* getCurrentDeviceProperties() {
  return getDeviceProperties(-1);
}

// The number of threads in a warp on the current device.
inline int warp_size() {
  return getCurrentDeviceProperties()->warpSize;
}

// Whether one device can read the memory of another.
inline bool canDeviceAccessPeer(
    [[maybe_unused]] c10::DeviceIndex device, [[maybe_unused]] c10::DeviceIndex peer_device) {
#ifdef INTEROP_WITH_CUDA
  constexpr const char* what = "devices have no access to each other";
  return at::cuda::canDeviceAccessPeer(
      detail::existing(device, what).index(), detail::existing(peer_device, what).index());
#else
  detail::not_compiled("devices have no access to each other");
#endif
}

}  // namespace interop::cuda
