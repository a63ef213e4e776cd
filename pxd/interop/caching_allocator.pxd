# The caching allocator of a device: what it holds, and how it gives it back.
#     getDeviceStats(device).allocated_bytes[<size_t>StatType.AGGREGATE].peak
# Everything raises torch.AcceleratorError where torch finds no device of the type, and NotImplementedError for the CPU,
# which has no such allocator.
from libcpp.pair cimport pair

from c10.core.CachingDeviceAllocator cimport DeviceStats
from c10.core.Device cimport Device, DeviceType
from c10.core.Storage cimport Storage
from c10.core.Stream cimport Stream
from interop.exceptions cimport translate_exception

cdef extern from "interop/caching_allocator.h" namespace "interop" nogil:
    # All 0 where nothing was allocated yet.
    DeviceStats getDeviceStats(const Device& device) except +translate_exception
    # Lets `peak` begin at `current`.
    void resetPeakStats(const Device& device) except +translate_exception
    # Lets `allocated`, `freed` and the counts begin at 0.
    void resetAccumulatedStats(const Device& device) except +translate_exception
    # Gives the memory that no tensor uses back to the devices.
    void emptyCache(DeviceType type) except +translate_exception
    # Free and total bytes, as the device's driver sees them.
    pair[size_t, size_t] getMemoryInfo(const Device& device) except +translate_exception
    # The memory is not given to another tensor before all is done that the stream was given until it is freed.
    void recordStream(const Storage& storage, const Stream& stream) except +translate_exception
