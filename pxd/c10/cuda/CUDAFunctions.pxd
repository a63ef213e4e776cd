# Facade over interop/cuda/functions.h: torch's header compiles only where CUDA's own headers are.
#
# CUDA devices by their index.
from libcpp cimport bool as cbool

from c10.core.Device cimport DeviceIndex
from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/functions.h" namespace "interop::cuda" nogil:
    # 0 where torch finds no device, also if it is built without CUDA.
    DeviceIndex device_count() noexcept
    # Raises there.
    DeviceIndex device_count_ensure_non_zero() except +translate_exception
    DeviceIndex current_device() except +translate_exception
    # For good; a CUDAGuard sets it back.
    void set_device(DeviceIndex device) except +translate_exception
    # The same, and returns the one before.
    DeviceIndex ExchangeDevice(DeviceIndex device) except +translate_exception
    # Waits until the current device has done everything that it was given.
    void device_synchronize() except +translate_exception
    # Whether this process has used the device.
    cbool hasPrimaryContext(DeviceIndex device) except +translate_exception
