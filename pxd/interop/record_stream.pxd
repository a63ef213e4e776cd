# Tensor.record_stream, as a function: what takes a stream would bring its header into every module as a method.
from ATen.core.TensorBase cimport TensorBase
from c10.core.Stream cimport Stream
from interop.exceptions cimport translate_exception

cdef extern from "interop/stream.h" namespace "interop" nogil:
    # The tensor's memory is not given to another one before all is done that the stream was given until it is freed.
    void record_stream(const TensorBase& tensor, const Stream& stream) except +translate_exception
