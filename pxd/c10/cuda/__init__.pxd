# `from c10.cuda cimport ...`: CUDA's streams, events, guards and devices. It compiles with every build of torch. If
# the running torch finds no CUDA device, everything except device_count() raises torch.AcceleratorError.
#
# The caching allocator is a separate module: `from c10.cuda cimport CUDACachingAllocator`.
from c10.cuda.CUDAEvent cimport CUDAEvent, cudaEvent_t, cudaEventDefault, cudaEventDisableTiming
from c10.cuda.CUDAFunctions cimport (
    ExchangeDevice, current_device, device_count, device_count_ensure_non_zero, device_synchronize, hasPrimaryContext,
    set_device,
)
from c10.cuda.CUDAGraphsC10Utils cimport CaptureStatus, currentStreamCaptureStatusMayInitCtx
from c10.cuda.CUDAGuard cimport CUDAGuard, CUDAStreamGuard, OptionalCUDAGuard, OptionalCUDAStreamGuard
from c10.cuda.CUDAStream cimport (
    CUDAStream, cudaStream_t, getCurrentCUDAStream, getDefaultCUDAStream, getStreamFromExternal, getStreamFromPool,
    setCurrentCUDAStream,
)
