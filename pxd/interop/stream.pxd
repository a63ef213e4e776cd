# Where streams come from, for devices of any type: `from interop.stream cimport current_stream`.
from libcpp cimport bool as cbool

from ATen.core.TensorBase cimport TensorBase
from c10.core.Device cimport Device
from c10.core.Stream cimport Stream
from interop.exceptions cimport translate_exception

cdef extern from "interop/stream.h" namespace "interop" nogil:
    # The CPU has one stream, which all three return.
    Stream current_stream(const Device& device) except +translate_exception
    Stream default_stream(const Device& device) except +translate_exception
    Stream stream_from_pool(const Device& device, cbool high_priority) except +translate_exception
    Stream stream_from_pool(const Device& device) except +translate_exception
    # For good; a StreamGuard sets it back.
    void set_current_stream(const Stream& stream) except +translate_exception
    # Tensor.record_stream, as a function: what takes a stream would bring its header into every module as a method. The
    # tensor's memory is not given to another one before all is done that the stream was given until it is freed.
    void record_stream(const TensorBase& tensor, const Stream& stream) except +translate_exception
