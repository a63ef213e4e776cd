# Facade over interop/device_guard.h: c10::DeviceGuard takes effect in its constructor, and cannot be assigned.
#
# The current device of a type. A guard takes effect on assignment and ends when the function returns or raises:
#     cdef DeviceGuard _guard = DeviceGuard(x.device())
# Everything raises torch.AcceleratorError if torch finds no device of the type.
from c10.core.Device cimport Device, DeviceIndex
from interop.exceptions cimport translate_exception

cdef extern from "interop/device_guard.h" namespace "interop" nogil:
    cppclass DeviceGuard:
        DeviceGuard() noexcept
        DeviceGuard(const Device& device) noexcept
        # Takes effect here.
        DeviceGuard& operator=(const DeviceGuard& request) except +translate_exception
        # Switches to another device. Starts the guard if it is not active.
        void reset_device(const Device& device) except +translate_exception
        void set_index(DeviceIndex index) except +translate_exception
        # Ends the guard before the function returns.
        void reset() noexcept
        Device original_device() except +translate_exception
        Device current_device() except +translate_exception
