# A random number generator. A variable cannot hold a torch.Generator here: pass the Python object, or None, to the
# function that takes a generator.
from libcpp cimport bool as cbool

cdef extern from "ATen/core/Generator.h" namespace "at" nogil:
    cppclass Generator:
        Generator() noexcept
        cbool defined() noexcept
