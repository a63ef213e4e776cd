"""Eight CUDA devices that only record what is requested from them."""
from libcpp.string cimport string
from libcpp.vector cimport vector

from interop.exceptions cimport translate_exception

cdef extern from "fake_devices.h" namespace "fake":
    void enable_ "fake::enable"() except +translate_exception
    void enable_stand_in_ "fake::enable_stand_in"() except +translate_exception
    void use_allocator_ "fake::use_allocator"() except +translate_exception
    vector[string]& written_ "fake::written"() except +translate_exception


def enable():
    """From here on this process has them."""
    enable_()


def enable_stand_in():
    """From here on this process has what stands for a device in FakeTensorMode."""
    enable_stand_in_()


def use_allocator():
    """As if something had been allocated."""
    use_allocator_()


def written():
    """What was written since the last call."""
    lines = [line.decode() for line in written_()]
    written_().clear()
    return lines
