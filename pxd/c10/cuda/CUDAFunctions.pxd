# Facade over interop/cuda/functions.h: torch's header compiles only if CUDA's own headers are installed.
#
# CUDA devices, by index.
from libcpp cimport bool as cbool

from c10.core.Device cimport DeviceIndex
from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/functions.h" namespace "interop::cuda" nogil:
    # 0 if torch finds no device or is built without CUDA.
    DeviceIndex device_count() noexcept
    # Raises in that case.
    DeviceIndex device_count_ensure_non_zero() except +translate_exception
    DeviceIndex current_device() except +translate_exception
    # Permanent; a CUDAGuard restores it.
    void set_device(DeviceIndex device) except +translate_exception
    # The same, and returns the previous device.
    DeviceIndex ExchangeDevice(DeviceIndex device) except +translate_exception
    # Waits until the current device has finished all work it was given.
    void device_synchronize() except +translate_exception
    # Whether this process has used the device.
    cbool hasPrimaryContext(DeviceIndex device) except +translate_exception
