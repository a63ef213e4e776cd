# Facade over interop/stream_guard.h: c10::StreamGuard takes effect in its constructor, and cannot be assigned.
#
# The current stream of a device. The guard takes effect on assignment and ends with the function:
#     cdef StreamGuard _guard = StreamGuard(stream_from_pool(x.device()))
# It also makes the stream's device current.
from c10.core.Device cimport Device
from c10.core.Stream cimport Stream
from interop.exceptions cimport translate_exception

cdef extern from "interop/stream_guard.h" namespace "interop" nogil:
    cppclass StreamGuard:
        StreamGuard() noexcept
        StreamGuard(const Stream& stream) noexcept
        # Takes effect here.
        StreamGuard& operator=(const StreamGuard& request) except +translate_exception
        # Switches to another stream. Starts the guard if it is not active.
        void reset_stream(const Stream& stream) except +translate_exception
        # Ends the guard before the function returns.
        void reset() noexcept
        # The previously current stream of the previously current device.
        Stream original_stream() except +translate_exception
        Stream current_stream() except +translate_exception
        Device original_device() except +translate_exception
        Device current_device() except +translate_exception
