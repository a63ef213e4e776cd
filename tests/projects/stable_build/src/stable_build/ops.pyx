"""Says what it was compiled with. It needs none of our declarations: how modules are built does not depend on them."""

from libc.stdint cimport uint64_t

cdef extern from *:
    const uint64_t TORCH_TARGET_VERSION
    const bint CYTHON_COMPILING_IN_LIMITED_API
    const unsigned int LIMITED "Py_LIMITED_API"
    const char* INTEROP_STABLE
    const char* INTEROP_LIMITED_API

cdef extern from "versions.h":
    uint64_t target_of_the_other_source()
    uint64_t running_abi() except 0


def compiled_with():
    return {
        "target": hex(TORCH_TARGET_VERSION),
        "other source": hex(target_of_the_other_source()),
        "limited": bool(CYTHON_COMPILING_IN_LIMITED_API),
        "python": hex(LIMITED),
        "texts": [INTEROP_STABLE.decode(), INTEROP_LIMITED_API.decode()],
    }


def running():
    """The version that the C shim says of the torch that the process has imported."""
    return hex(running_abi())


def total(const double[:] values):
    cdef double sum = 0
    for i in range(values.shape[0]):
        sum += values[i]
    return sum
