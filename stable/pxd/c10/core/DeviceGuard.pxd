# The current device. A guard takes effect on assignment and ends when the function returns or raises:
#     cdef DeviceGuard _guard = DeviceGuard(x.device())
from c10.core.Device cimport Device
from interop.exceptions cimport translate_exception

cdef extern from "interop/device_guard.h" namespace "interop" nogil:
    cppclass DeviceGuard:
        DeviceGuard() noexcept
        DeviceGuard(const Device& device) noexcept
        # Takes effect here.
        DeviceGuard& operator=(const DeviceGuard& request) except +translate_exception
        # Ends the guard before the function returns.
        void reset() noexcept
