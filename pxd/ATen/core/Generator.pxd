# A random number generator's state; the default-constructed one stands for "the device's default generator".
from libc.stdint cimport uint64_t
from libcpp cimport bool as cbool

from c10.core.Device cimport Device
from interop.exceptions cimport translate_exception

cdef extern from "ATen/core/Generator.h" namespace "at" nogil:
    cppclass Generator:
        Generator() noexcept
        cbool defined() noexcept
        void set_current_seed(uint64_t seed) except +translate_exception
        uint64_t current_seed() except +translate_exception
        uint64_t seed() except +translate_exception
        Device device() except +translate_exception
        Generator clone() except +translate_exception
