# The caching allocator of a device: its statistics, and functions that return memory to the device.
#     getDeviceStats(device).allocated_bytes[<size_t>StatType.AGGREGATE].peak
# Everything raises torch.AcceleratorError if torch finds no device of the type, and NotImplementedError for the CPU,
# which has no such allocator.
from libcpp.pair cimport pair

from c10.core.CachingDeviceAllocator cimport DeviceStats
from c10.core.Device cimport Device, DeviceType
from c10.core.Storage cimport Storage
from c10.core.Stream cimport Stream
from interop.exceptions cimport translate_exception

cdef extern from "interop/caching_allocator.h" namespace "interop" nogil:
    # All zero if nothing has been allocated yet.
    DeviceStats getDeviceStats(const Device& device) except +translate_exception
    # Resets `peak` to `current`.
    void resetPeakStats(const Device& device) except +translate_exception
    # Resets `allocated`, `freed` and the counts to 0.
    void resetAccumulatedStats(const Device& device) except +translate_exception
    # Returns memory that no tensor uses to the devices.
    void emptyCache(DeviceType type) except +translate_exception
    # Free and total bytes, as the device's driver reports them.
    pair[size_t, size_t] getMemoryInfo(const Device& device) except +translate_exception
    # The memory is not reused for another tensor until all work queued on the stream before its release is done.
    void recordStream(const Storage& storage, const Stream& stream) except +translate_exception
