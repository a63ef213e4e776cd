# Facade over interop/stream_guard.h: c10::StreamGuard begins when it is made, and cannot be assigned.
#
# The current stream of a device, for a while. It begins where it is assigned and ends with the function:
#     cdef StreamGuard _guard = StreamGuard(stream_from_pool(x.device()))
# Its device becomes current, too.
from c10.core.Device cimport Device
from c10.core.Stream cimport Stream
from interop.exceptions cimport translate_exception

cdef extern from "interop/stream_guard.h" namespace "interop" nogil:
    cppclass StreamGuard:
        StreamGuard() noexcept
        StreamGuard(const Stream& stream) noexcept
        # Begins.
        StreamGuard& operator=(const StreamGuard& request) except +translate_exception
        # Another stream than before; begins if it has not begun.
        void reset_stream(const Stream& stream) except +translate_exception
        # Ends before the function does.
        void reset() noexcept
        # The stream that was current, of the device that was current.
        Stream original_stream() except +translate_exception
        Stream current_stream() except +translate_exception
        Device original_device() except +translate_exception
        Device current_device() except +translate_exception
