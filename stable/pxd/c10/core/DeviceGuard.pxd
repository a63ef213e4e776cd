# The current device. A guard begins where it is assigned and ends with the function, however that ends:
#     cdef DeviceGuard _guard = DeviceGuard(x.device())
from c10.core.Device cimport Device
from interop.exceptions cimport translate_exception

cdef extern from "interop/device_guard.h" namespace "interop" nogil:
    cppclass DeviceGuard:
        DeviceGuard() noexcept
        DeviceGuard(const Device& device) noexcept
        # Begins.
        DeviceGuard& operator=(const DeviceGuard& request) except +translate_exception
        # Ends before the function does.
        void reset() noexcept
