# Facade over interop/stream.h: c10::Stream has no default constructor, which a Cython variable needs.
#
# A stream of a device of any type. A variable that is only declared holds no stream; using it raises ValueError.
#
# Stream.unpack3(s.stream_id, s.device_index, <DeviceType><int>s.device_type) converts a torch.Stream s, and
# torch.wrap_stream(stream.id(), stream.device()) converts back.
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
        # The backend's own stream, such as a cudaStream_t for CUDA. NULL is CUDA's default stream.
        void* native_handle() except +translate_exception
        # Whether all work queued on the stream is done.
        cbool query() except +translate_exception
        # Waits for that work.
        void synchronize() except +translate_exception
        # Makes all later work of this stream wait for an Event.
        void wait[E](const E& event) except +translate_exception
        # Whether a graph captures the stream. Needs torch 2.12.
        cbool is_capturing() except +translate_exception
        cbool operator==(const Stream& other) noexcept
        cbool operator!=(const Stream& other) noexcept
