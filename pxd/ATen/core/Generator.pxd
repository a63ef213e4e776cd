# Facade over interop/generator.h: the methods of an undefined at::Generator would read a null pointer.
#
# A random number generator's state. A default-constructed one, passed to a function of ATen, stands for the device's
# own; asked for its state, it raises ValueError. interop/generator.pxd makes generators.
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
        uint64_t seed() except +translate_exception  # makes one up, sets it and returns it
        Generator clone() except +translate_exception
        Device device() except +translate_exception
        # For kernels that draw by themselves, on the CPU. Lock around the draws, and end with unlock() in a `finally`.
        # ATen's functions and the methods above lock too: within the lock they would wait for ever.
        void lock() except +translate_exception
        void unlock() except +translate_exception
        uint32_t random() except +translate_exception
        uint64_t random64() except +translate_exception
        cbool operator==(const Generator& other) noexcept
        cbool operator!=(const Generator& other) noexcept
