# Devices of any type: `from interop.device_guard cimport device_count`. If torch finds no device of the type,
# device_count() is 0 and everything else raises torch.AcceleratorError.
from c10.core.Device cimport Device, DeviceIndex, DeviceType
from interop.exceptions cimport translate_exception

cdef extern from "interop/device_guard.h" namespace "interop" nogil:
    DeviceIndex device_count(DeviceType type) noexcept
    Device current_device(DeviceType type) except +translate_exception
    # Permanent; a DeviceGuard restores it.
    void set_device(const Device& device) except +translate_exception
    # Waits until the device has finished all work it was given.
    void device_synchronize(const Device& device) except +translate_exception
