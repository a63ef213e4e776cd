# Facade over interop/cuda/stream.h: torch's header compiles only if CUDA's own headers are installed.
#
# A stream of a CUDA device. A variable that is only declared holds no stream; using it raises ValueError.
from libcpp cimport bool as cbool
from libcpp.pair cimport pair

from c10.core.Device cimport DeviceIndex
from c10.core.Stream cimport Stream
from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/stream.h" nogil:
    cppclass CUstream_st
    ctypedef CUstream_st* cudaStream_t "interop::cuda::cudaStream_t"

cdef extern from "interop/cuda/stream.h" namespace "interop::cuda" nogil:
    # Everything that Stream has, and:
    cppclass CUDAStream(Stream):
        CUDAStream() noexcept
        CUDAStream(const CUDAStream& other) noexcept
        # ValueError for other devices' streams.
        CUDAStream(const Stream& stream) except +translate_exception
        cudaStream_t stream() except +translate_exception
        Stream unwrap() noexcept
        # Lower numbers have higher priority.
        int priority() except +translate_exception

        # The lowest and the highest priority.
        @staticmethod
        pair[int, int] priority_range() except +translate_exception

    # Without an index, these use the current device.
    CUDAStream getCurrentCUDAStream() except +translate_exception
    CUDAStream getCurrentCUDAStream(DeviceIndex device) except +translate_exception
    CUDAStream getDefaultCUDAStream() except +translate_exception
    CUDAStream getDefaultCUDAStream(DeviceIndex device) except +translate_exception
    CUDAStream getStreamFromPool() except +translate_exception
    CUDAStream getStreamFromPool(cbool isHighPriority) except +translate_exception
    CUDAStream getStreamFromPool(cbool isHighPriority, DeviceIndex device) except +translate_exception
    # A stream of another library, which keeps ownership.
    CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex device) except +translate_exception
    # Permanent; a CUDAStreamGuard restores it.
    void setCurrentCUDAStream(const CUDAStream& stream) except +translate_exception
