# Facade over interop/event.h: c10::Event cannot be assigned, and has neither a default nor events of the CPU.
#
# A mark in a stream, for other streams and the CPU to wait for. The one that is only declared is usable. On the CPU it
# has happened when it is recorded, and has no time.
from libcpp cimport bool as cbool

from c10.core.Device cimport Device, DeviceIndex, DeviceType
from c10.core.Stream cimport Stream
from interop.exceptions cimport translate_exception

cdef extern from "interop/event.h" namespace "interop" nogil:
    enum class EventFlag "c10::EventFlag":
        PYTORCH_DEFAULT  # without a time
        BACKEND_DEFAULT  # with one

    cppclass Event:
        Event() noexcept
        Event(DeviceType type) noexcept
        Event(DeviceType type, EventFlag flag) noexcept
        void record(const Stream& stream) except +translate_exception
        # Does nothing if it was recorded.
        void recordOnce(const Stream& stream) except +translate_exception
        # Lets what the stream is given from now on wait for it.
        void block(const Stream& stream) except +translate_exception
        # Whether it has happened; so has one that was never recorded.
        cbool query() except +translate_exception
        # Waits for it.
        void synchronize() except +translate_exception
        # Milliseconds from this event to the other one. Both must have a time, and have happened.
        double elapsedTime(const Event& other) except +translate_exception
        Device device() except +translate_exception
        DeviceType device_type() except +translate_exception
        DeviceIndex device_index() noexcept
        EventFlag flag() noexcept
        cbool was_marked_for_recording() noexcept
        # The event as its backend knows it, a cudaEvent_t for CUDA.
        void* eventId() noexcept
