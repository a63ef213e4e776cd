"""Says what it was compiled with, and calls torch."""

cimport ATen as at
cimport torch
from libc.stdint cimport uint64_t

cdef extern from *:
    const uint64_t TORCH_TARGET_VERSION
    const bint CYTHON_COMPILING_IN_LIMITED_API
    const unsigned int LIMITED "Py_LIMITED_API"
    const char* INTEROP_STABLE
    const char* INTEROP_LIMITED_API

cdef extern from "target.h":
    uint64_t target_of_the_other_source()


def compiled_with():
    return {
        "target": hex(TORCH_TARGET_VERSION),
        "other source": hex(target_of_the_other_source()),
        "limited": bool(CYTHON_COMPILING_IN_LIMITED_API),
        "python": hex(LIMITED),
        "texts": [INTEROP_STABLE.decode(), INTEROP_LIMITED_API.decode()],
    }


def twice(torch.Tensor x not None):
    cdef at.Tensor y, a = x.cdata
    with nogil:
        y = at.mul(a, 2)
    return torch.wrap(y)


def total(const double[:] values):
    """With a typed memoryview, whose buffers came to the Limited API with CPython 3.11."""
    cdef double sum = 0
    for i in range(values.shape[0]):
        sum += values[i]
    return sum
