# CPU generators, and the state of any generator as a tensor.
from libc.stdint cimport uint64_t

from ATen.core.Generator cimport Generator
from ATen.core.TensorBody cimport Tensor
from interop.exceptions cimport translate_exception

cdef extern from "interop/generator.h" namespace "interop" nogil:
    Generator default_generator() except +translate_exception  # the CPU's, which at.manual_seed() seeds
    Generator make_cpu_generator(uint64_t seed) except +translate_exception
    # Functions rather than methods, because in Cython the files of Generator and Tensor would include each other.
    Tensor get_state(const Generator& generator) except +translate_exception
    void set_state(Generator& generator, const Tensor& state) except +translate_exception
