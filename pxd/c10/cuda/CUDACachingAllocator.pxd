# Facade over interop/cuda/caching_allocator.h: torch's header compiles only where CUDA's own headers are.
#
# CUDA's caching allocator by the index of a device:
#     from c10.cuda cimport CUDACachingAllocator
#     CUDACachingAllocator.getDeviceStats(0).allocated_bytes[0].peak
from libcpp.pair cimport pair

from c10.core.CachingDeviceAllocator cimport DeviceStats
from c10.core.Device cimport DeviceIndex
from c10.core.Storage cimport Storage
from c10.cuda.CUDAStream cimport CUDAStream
from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/caching_allocator.h" namespace "interop::cuda::CUDACachingAllocator" nogil:
    # All 0 where nothing was allocated yet.
    DeviceStats getDeviceStats(DeviceIndex device) except +translate_exception
    # Lets `peak` begin at `current`.
    void resetPeakStats(DeviceIndex device) except +translate_exception
    # Lets `allocated`, `freed` and the counts begin at 0.
    void resetAccumulatedStats(DeviceIndex device) except +translate_exception
    # Gives the memory that no tensor uses back to the devices.
    void emptyCache() except +translate_exception
    # Free and total bytes, as the driver sees them.
    pair[size_t, size_t] getMemoryInfo(DeviceIndex device) except +translate_exception
    # The memory is not given to another tensor before all is done that the stream was given until it is freed.
    void recordStream(const Storage& storage, const CUDAStream& stream) except +translate_exception
