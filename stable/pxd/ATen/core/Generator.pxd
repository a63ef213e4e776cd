# A random number generator. No variable can be made of a torch.Generator here: hand the Python object, or None, to the
# function that takes one.
from libcpp cimport bool as cbool

cdef extern from "ATen/core/Generator.h" namespace "at" nogil:
    cppclass Generator:
        Generator() noexcept
        cbool defined() noexcept
