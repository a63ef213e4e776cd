# Facade over interop/generator.h: the methods of an undefined at::Generator would read a null pointer.
#
# The state of a random number generator. ATen's functions treat a default-constructed generator as the device's own;
# using its state raises ValueError. interop/generator.pxd creates generators.
from libc.stdint cimport uint32_t, uint64_t
from libcpp cimport bool as cbool

from c10.core.Device cimport Device
from interop.exceptions cimport translate_exception

cdef extern from "interop/generator.h" namespace "interop" nogil:
    cppclass Generator:
        Generator() noexcept
        cbool defined() noexcept
        uint64_t current_seed() except +translate_exception
        void set_current_seed(uint64_t seed) except +translate_exception
        uint64_t seed() except +translate_exception  # sets a random seed and returns it
        Generator clone() except +translate_exception
        Device device() except +translate_exception
        # For CPU kernels that draw numbers themselves. Hold the lock during the draws, and call unlock() in a
        # `finally`. ATen's functions and the methods above take the same lock: while you hold it, they deadlock.
        void lock() except +translate_exception
        void unlock() except +translate_exception
        uint32_t random() except +translate_exception
        uint64_t random64() except +translate_exception
        cbool operator==(const Generator& other) noexcept
        cbool operator!=(const Generator& other) noexcept
