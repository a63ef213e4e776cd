# Facade over interop/cuda/caching_allocator.h: torch's header compiles only if CUDA's own headers are installed.
#
# CUDA's caching allocator, by device index:
#     from c10.cuda cimport CUDACachingAllocator
#     CUDACachingAllocator.getDeviceStats(0).allocated_bytes[0].peak
from libcpp.pair cimport pair

from c10.core.CachingDeviceAllocator cimport DeviceStats
from c10.core.Device cimport DeviceIndex
from c10.core.Storage cimport Storage
from c10.cuda.CUDAStream cimport CUDAStream
from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/caching_allocator.h" namespace "interop::cuda::CUDACachingAllocator" nogil:
    # All zero if nothing has been allocated yet.
    DeviceStats getDeviceStats(DeviceIndex device) except +translate_exception
    # Resets `peak` to `current`.
    void resetPeakStats(DeviceIndex device) except +translate_exception
    # Resets `allocated`, `freed` and the counts to 0.
    void resetAccumulatedStats(DeviceIndex device) except +translate_exception
    # Returns memory that no tensor uses to the devices.
    void emptyCache() except +translate_exception
    # Free and total bytes, as the driver reports them.
    pair[size_t, size_t] getMemoryInfo(DeviceIndex device) except +translate_exception
    # The memory is not reused for another tensor until all work queued on the stream before its release is done.
    void recordStream(const Storage& storage, const CUDAStream& stream) except +translate_exception
