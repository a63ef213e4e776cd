# The converters of `interop` in Cython, without the Python objects of tensors:
# `from interop.bridges cimport from_numpy, to_numpy`. They need the GIL.
from libcpp cimport bool as cbool

from ATen.core.TensorBody cimport Tensor
from interop.exceptions cimport translate_exception

cdef extern from "interop/bridges.h" namespace "interop::bridges":
    # What becomes of read-only memory: torch has no read-only tensors. Only call it `share` if nothing will write.
    enum class Readonly "interop::bridges::Readonly":
        raise_ "interop::bridges::Readonly::raise"
        share
        copy
    # A tensor over the memory of a numpy.ndarray, which it keeps alive.
    Tensor from_numpy(object array) except +translate_exception
    Tensor from_numpy(object array, Readonly readonly) except +translate_exception
    # A numpy.ndarray over the memory of a tensor, which it keeps alive.
    object to_numpy(const Tensor& tensor) except +translate_exception
    object to_numpy(const Tensor& tensor, cbool force) except +translate_exception
    object to_numpy(const Tensor& tensor, cbool force, cbool readonly) except +translate_exception
