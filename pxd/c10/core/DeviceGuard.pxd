# Facade over interop/device_guard.h: c10::DeviceGuard begins when it is made, and cannot be assigned.
#
# The current device of a type. A guard begins where it is assigned and ends with the function, however that ends:
#     cdef DeviceGuard _guard = DeviceGuard(x.device())
# Everything raises torch.AcceleratorError where torch finds no device of the type.
from c10.core.Device cimport Device, DeviceIndex
from interop.exceptions cimport translate_exception

cdef extern from "interop/device_guard.h" namespace "interop" nogil:
    cppclass DeviceGuard:
        DeviceGuard() noexcept
        DeviceGuard(const Device& device) noexcept
        # Begins.
        DeviceGuard& operator=(const DeviceGuard& request) except +translate_exception
        # Another device than before; begins if it has not begun.
        void reset_device(const Device& device) except +translate_exception
        void set_index(DeviceIndex index) except +translate_exception
        # Ends before the function does.
        void reset() noexcept
        Device original_device() except +translate_exception
        Device current_device() except +translate_exception
