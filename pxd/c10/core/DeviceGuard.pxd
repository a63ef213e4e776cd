# The current device of a type. A guard begins where it is assigned and ends with the function, however that ends:
#     cdef DeviceGuard _guard = DeviceGuard(x.device())
# Everything raises torch.AcceleratorError where torch finds no device of the type; device_count() is 0 there.
from c10.core.Device cimport Device, DeviceIndex, DeviceType
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

    DeviceIndex device_count(DeviceType type) noexcept
    Device current_device(DeviceType type) except +translate_exception
    # For good; a DeviceGuard sets it back.
    void set_device(const Device& device) except +translate_exception
    # Waits until the device has done everything that it was given.
    void device_synchronize(const Device& device) except +translate_exception
