# A random number generator's state. A default-constructed one, passed to a function, stands for the device's own; it
# has no state that could be asked for, so nothing that would read it is declared.
from libcpp cimport bool as cbool

cdef extern from "ATen/core/Generator.h" namespace "at" nogil:
    cppclass Generator:
        Generator() noexcept
        cbool defined() noexcept
