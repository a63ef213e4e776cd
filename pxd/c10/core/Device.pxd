# Facade over interop/device.h: c10::Device has no default constructor, which a Cython variable needs.
#
# A device type and an index. The default is the CPU.
from libc.stdint cimport int8_t
from libcpp cimport bool as cbool
from libcpp.string cimport string

from interop.exceptions cimport translate_exception

cdef extern from "interop/device.h" namespace "interop" nogil:
    enum class DeviceType "c10::DeviceType":
        CPU
        CUDA
        HIP
        XLA
        MPS
        Meta
        XPU
        HPU
        MTIA
        PrivateUse1

    const DeviceType kCPU "c10::kCPU"
    const DeviceType kCUDA "c10::kCUDA"
    const DeviceType kHIP "c10::kHIP"
    const DeviceType kXLA "c10::kXLA"
    const DeviceType kMPS "c10::kMPS"
    const DeviceType kMeta "c10::kMeta"
    const DeviceType kXPU "c10::kXPU"
    const DeviceType kHPU "c10::kHPU"
    const DeviceType kMTIA "c10::kMTIA"
    const DeviceType kPrivateUse1 "c10::kPrivateUse1"

    ctypedef int8_t DeviceIndex "c10::DeviceIndex"

    cppclass Device:
        Device() noexcept
        Device(DeviceType type) except +translate_exception
        Device(DeviceType type, DeviceIndex index) except +translate_exception
        Device(const string& text) except +translate_exception
        DeviceType type() noexcept
        DeviceIndex index() noexcept
        cbool has_index() noexcept
        cbool is_cpu() noexcept
        cbool is_cuda() noexcept
        cbool is_meta() noexcept
        string str() except +translate_exception
        cbool operator==(const Device& other) noexcept
        cbool operator!=(const Device& other) noexcept
