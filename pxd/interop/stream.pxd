# Functions that return streams, for devices of any type: `from interop.stream cimport current_stream`.
from libcpp cimport bool as cbool

from ATen.core.TensorBase cimport TensorBase
from c10.core.Device cimport Device
from c10.core.Stream cimport Stream
from interop.exceptions cimport translate_exception

cdef extern from "interop/stream.h" namespace "interop" nogil:
    # The CPU has one stream, which all three functions return.
    Stream current_stream(const Device& device) except +translate_exception
    Stream default_stream(const Device& device) except +translate_exception
    Stream stream_from_pool(const Device& device, cbool high_priority) except +translate_exception
    Stream stream_from_pool(const Device& device) except +translate_exception
    # Permanent; a StreamGuard restores it.
    void set_current_stream(const Stream& stream) except +translate_exception
    # Tensor.record_stream as a function, because a method with a stream parameter would bring the stream's header
    # into every module. The tensor's memory is not reused for another tensor until all work queued on the stream
    # before its release is done.
    void record_stream(const TensorBase& tensor, const Stream& stream) except +translate_exception
