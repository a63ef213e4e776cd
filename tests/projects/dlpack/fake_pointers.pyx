# distutils: language = c++
# distutils: include_dirs = .
# distutils: depends = fake_pointers.h
"""Addresses on CUDA devices that do not exist."""

cdef extern from "fake_pointers.h" namespace "fake":
    void c_enable "fake::enable"() noexcept
    void c_know "fake::know"(size_t address, int device) except +


def enable():
    """From here on CUDA knows what know() is told."""
    c_enable()


def know(size_t address, int device):
    """From now on this address is on that device."""
    c_know(address, device)
