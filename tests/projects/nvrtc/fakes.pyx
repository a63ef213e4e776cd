# distutils: language = c++
# distutils: include_dirs = .
# distutils: depends = fake_devices.h
"""CUDA devices that do not exist, for torch."""

from interop cimport dims
from libc.stdint cimport int64_t

cimport ATen as at
cimport torch
from interop.exceptions cimport translate_exception

cdef extern from "fake_devices.h" namespace "fake":
    void c_install "fake::install"() noexcept
    void c_set_stream "fake::set_stream"(int device, int64_t stream) except +translate_exception
    int c_current_device "fake::current_device"() noexcept
    void c_cut "fake::cut"(const at.Tensor& tensor) noexcept
    at.Tensor c_on_device "fake::on_device"(const at.Tensor& tensor, int device) except +translate_exception


def install():
    """Gives torch eight CUDA devices."""
    c_install()


def set_stream(int device, int64_t stream):
    """Makes a stream current: its handle is the device times 1000 plus `stream`; 0 is the default one."""
    c_set_stream(device, stream)


def current_device():
    return c_current_device()


def on_device(torch.Tensor tensor not None, int device=0):
    """A tensor that says of itself that it is on a device, with the memory of one on the CPU."""
    return torch.wrap(c_on_device(tensor.cdata, device))


def beyond_its_storage():
    """A tensor on device 0 whose storage was cut."""
    cdef at.Tensor short = c_on_device(at.ones(dims(4)), 0)
    c_cut(short)
    return torch.wrap(short)
