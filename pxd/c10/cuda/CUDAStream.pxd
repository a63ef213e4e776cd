# Facade over interop/cuda/stream.h: torch's header compiles only where CUDA's own headers are.
#
# A stream of a CUDA device. One that is only declared is none, and raises ValueError when it is used.
from libcpp cimport bool as cbool
from libcpp.pair cimport pair

from c10.core.Device cimport DeviceIndex
from c10.core.Stream cimport Stream
from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/stream.h" nogil:
    cppclass CUstream_st
    ctypedef CUstream_st* cudaStream_t "interop::cuda::cudaStream_t"

cdef extern from "interop/cuda/stream.h" namespace "interop::cuda" nogil:
    # All that a Stream has, and:
    cppclass CUDAStream(Stream):
        CUDAStream() noexcept
        CUDAStream(const CUDAStream& other) noexcept
        # ValueError if it is not CUDA's.
        CUDAStream(const Stream& stream) except +translate_exception
        cudaStream_t stream() except +translate_exception
        Stream unwrap() noexcept
        # Lower numbers go first.
        int priority() except +translate_exception

        # The lowest priority and the highest.
        @staticmethod
        pair[int, int] priority_range() except +translate_exception

    # Of the current device where no index is given.
    CUDAStream getCurrentCUDAStream() except +translate_exception
    CUDAStream getCurrentCUDAStream(DeviceIndex device) except +translate_exception
    CUDAStream getDefaultCUDAStream() except +translate_exception
    CUDAStream getDefaultCUDAStream(DeviceIndex device) except +translate_exception
    CUDAStream getStreamFromPool() except +translate_exception
    CUDAStream getStreamFromPool(cbool isHighPriority) except +translate_exception
    CUDAStream getStreamFromPool(cbool isHighPriority, DeviceIndex device) except +translate_exception
    # A stream of another library, which stays that library's.
    CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex device) except +translate_exception
    # For good; a CUDAStreamGuard sets it back.
    void setCurrentCUDAStream(const CUDAStream& stream) except +translate_exception
