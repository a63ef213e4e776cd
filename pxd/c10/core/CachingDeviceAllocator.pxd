# The caching allocator of a device: what it holds, and how it gives it back.
#     getDeviceStats(device).allocated_bytes[<size_t>StatType.AGGREGATE].peak
# Everything raises torch.AcceleratorError where torch finds no device of the type, and NotImplementedError for the CPU,
# which has no such allocator.
from libc.stdint cimport int64_t
from libcpp.pair cimport pair

from c10.core.Device cimport Device, DeviceType
from c10.core.Storage cimport Storage
from c10.core.Stream cimport Stream
from interop.exceptions cimport translate_exception

cdef extern from "interop/caching_allocator.h" namespace "interop" nogil:
    enum class StatType "c10::CachingAllocator::StatType":
        AGGREGATE
        SMALL_POOL
        LARGE_POOL

    cppclass Stat "c10::CachingAllocator::Stat":
        int64_t current
        int64_t peak
        int64_t allocated
        int64_t freed

    cppclass StatArray "c10::CachingAllocator::StatArray":
        const Stat& operator[](size_t type) noexcept

    cppclass DeviceStats "c10::CachingDeviceAllocator::DeviceStats":
        DeviceStats() noexcept
        StatArray allocation
        StatArray segment
        StatArray active
        StatArray inactive_split
        StatArray allocated_bytes
        StatArray reserved_bytes
        StatArray active_bytes
        StatArray inactive_split_bytes
        StatArray requested_bytes
        int64_t num_alloc_retries
        int64_t num_ooms
        Stat oversize_allocations
        Stat oversize_segments
        int64_t num_sync_all_streams
        int64_t num_device_alloc
        int64_t num_device_free
        int64_t max_split_size

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
