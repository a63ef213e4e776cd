# Facade over interop/cuda/guard.h: torch's header compiles only if CUDA's own headers are installed.
#
# Guards for CUDA. A guard takes effect on assignment and ends when the function returns or raises:
#     cdef CUDAGuard _guard = CUDAGuard(x.get_device())
# The optional guards are the same classes here, because Cython needs a guard that can be inactive.
from c10.core.Device cimport Device, DeviceIndex
from c10.core.Stream cimport Stream
from c10.cuda.CUDAStream cimport CUDAStream
from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/guard.h" namespace "interop::cuda" nogil:
    cppclass CUDAGuard:
        CUDAGuard() noexcept
        CUDAGuard(DeviceIndex index) noexcept
        CUDAGuard(const Device& device) noexcept
        # Takes effect here.
        CUDAGuard& operator=(const CUDAGuard& request) except +translate_exception
        # Switch to another device. Each starts the guard if it is not active.
        void reset_device(const Device& device) except +translate_exception
        void set_device(const Device& device) except +translate_exception
        void set_index(DeviceIndex index) except +translate_exception
        # Ends the guard before the function returns.
        void reset() noexcept
        Device original_device() except +translate_exception
        Device current_device() except +translate_exception
    ctypedef CUDAGuard OptionalCUDAGuard "interop::cuda::CUDAGuard"

    cppclass CUDAStreamGuard:
        CUDAStreamGuard() noexcept
        CUDAStreamGuard(const Stream& stream) noexcept
        # Takes effect here.
        CUDAStreamGuard& operator=(const CUDAStreamGuard& request) except +translate_exception
        # Switches to another stream. Starts the guard if it is not active.
        void reset_stream(const Stream& stream) except +translate_exception
        # Ends the guard before the function returns.
        void reset() noexcept
        # The previously current stream of the previously current device.
        CUDAStream original_stream() except +translate_exception
        CUDAStream current_stream() except +translate_exception
        Device original_device() except +translate_exception
        Device current_device() except +translate_exception
    ctypedef CUDAStreamGuard OptionalCUDAStreamGuard "interop::cuda::CUDAStreamGuard"
