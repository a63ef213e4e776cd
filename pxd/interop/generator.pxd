# A generator's state as a tensor, as Generator.get_state() and set_state() of torch.
from ATen.core.Generator cimport Generator
from ATen.core.TensorBody cimport Tensor
from interop.exceptions cimport translate_exception

cdef extern from "interop/generator.h" namespace "interop" nogil:
    Tensor get_state(const Generator& generator) except +translate_exception
    void set_state(Generator& generator, const Tensor& state) except +translate_exception
