# Facade over interop/stream.h: c10::Stream has no default, which a variable of Cython must have.
#
# A stream of a device of any type. One that is only declared is none, and raises ValueError when it is used.
#
# Of a torch.Stream s it is Stream.unpack3(s.stream_id, s.device_index, <DeviceType><int>s.device_type), and
# torch.wrap_stream(stream.id(), stream.device()) is a torch.Stream again.
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool

from c10.core.Device cimport Device, DeviceIndex, DeviceType
from interop.exceptions cimport translate_exception

cdef extern from "interop/stream.h" namespace "interop" nogil:
    ctypedef int64_t StreamId "c10::StreamId"

    cppclass Stream:
        Stream() noexcept
        Stream(const Stream& other) noexcept

        @staticmethod
        Stream unpack3(StreamId id, DeviceIndex index, DeviceType type) except +translate_exception
        cbool defined() noexcept
        Device device() except +translate_exception
        DeviceType device_type() except +translate_exception
        DeviceIndex device_index() except +translate_exception
        StreamId id() except +translate_exception
        # The stream as its backend knows it, a cudaStream_t for CUDA. NULL is CUDA's default stream.
        void* native_handle() except +translate_exception
        # Whether everything that was given to it is done.
        cbool query() except +translate_exception
        # Waits for that.
        void synchronize() except +translate_exception
        # Lets what it is given from now on wait for an Event.
        void wait[E](const E& event) except +translate_exception
        # Whether a graph captures it. torch 2.12.
        cbool is_capturing() except +translate_exception
        cbool operator==(const Stream& other) noexcept
        cbool operator!=(const Stream& other) noexcept
