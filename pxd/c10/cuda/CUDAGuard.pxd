# Facade over interop/cuda/guard.h: torch's header compiles only where CUDA's own headers are.
#
# Guards for CUDA. Each begins where it is assigned and ends with the function, however that ends:
#     cdef CUDAGuard _guard = CUDAGuard(x.get_device())
# The optional ones are the same here: Cython needs a guard that has not begun.
from c10.core.Device cimport Device, DeviceIndex
from c10.core.Stream cimport Stream
from c10.cuda.CUDAStream cimport CUDAStream
from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/guard.h" namespace "interop::cuda" nogil:
    cppclass CUDAGuard:
        CUDAGuard() noexcept
        CUDAGuard(DeviceIndex index) noexcept
        CUDAGuard(const Device& device) noexcept
        # Begins.
        CUDAGuard& operator=(const CUDAGuard& request) except +translate_exception
        # Another device than before; each begins if it has not begun.
        void reset_device(const Device& device) except +translate_exception
        void set_device(const Device& device) except +translate_exception
        void set_index(DeviceIndex index) except +translate_exception
        # Ends before the function does.
        void reset() noexcept
        Device original_device() except +translate_exception
        Device current_device() except +translate_exception
    ctypedef CUDAGuard OptionalCUDAGuard "interop::cuda::CUDAGuard"

    cppclass CUDAStreamGuard:
        CUDAStreamGuard() noexcept
        CUDAStreamGuard(const Stream& stream) noexcept
        # Begins.
        CUDAStreamGuard& operator=(const CUDAStreamGuard& request) except +translate_exception
        # Another stream than before; begins if it has not begun.
        void reset_stream(const Stream& stream) except +translate_exception
        # Ends before the function does.
        void reset() noexcept
        # The stream that was current, of the device that was current.
        CUDAStream original_stream() except +translate_exception
        CUDAStream current_stream() except +translate_exception
        Device original_device() except +translate_exception
        Device current_device() except +translate_exception
    ctypedef CUDAStreamGuard OptionalCUDAStreamGuard "interop::cuda::CUDAStreamGuard"
