# Statistics of a device's caching allocator. interop/caching_allocator.pxd reads them.
from libc.stdint cimport int64_t

cdef extern from "c10/core/CachingDeviceAllocator.h" nogil:
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
