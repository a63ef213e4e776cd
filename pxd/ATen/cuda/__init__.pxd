# `from ATen.cuda cimport ...`: the streams, events, guards and devices of at::cuda. It compiles with every build of
# torch. If the running torch finds no CUDA device, everything except is_available() and device_count() raises
# torch.AcceleratorError.
from ATen.cuda.CUDAContext cimport (
    canDeviceAccessPeer, cudaDeviceProp, getCurrentDeviceProperties, getDeviceProperties, is_available, warp_size,
)
from ATen.cuda.CUDAGraphsUtils cimport assertNotCapturing, currentStreamCaptureStatus
from c10.cuda cimport (
    CaptureStatus, CUDAEvent, CUDAGuard, CUDAStream, CUDAStreamGuard, OptionalCUDAGuard, OptionalCUDAStreamGuard,
    cudaEvent_t, cudaEventDefault, cudaEventDisableTiming, cudaStream_t, current_device, device_count,
    device_synchronize, getCurrentCUDAStream, getDefaultCUDAStream, getStreamFromExternal, getStreamFromPool,
    set_device, setCurrentCUDAStream,
)
