# Facade over interop/event.h: c10::Event cannot be assigned, and has no default constructor and no CPU events.
#
# A mark in a stream, for which other streams and the CPU can wait. A declared variable is a usable event. On the CPU
# an event has happened as soon as it is recorded, and has no time.
from libcpp cimport bool as cbool

from c10.core.Device cimport Device, DeviceIndex, DeviceType
from c10.core.Stream cimport Stream
from interop.exceptions cimport translate_exception

cdef extern from "interop/event.h" namespace "interop" nogil:
    enum class EventFlag "c10::EventFlag":
        PYTORCH_DEFAULT  # no timing
        BACKEND_DEFAULT  # with timing

    cppclass Event:
        Event() noexcept
        Event(DeviceType type) noexcept
        Event(DeviceType type, EventFlag flag) noexcept
        void record(const Stream& stream) except +translate_exception
        # Does nothing if the event is already recorded.
        void recordOnce(const Stream& stream) except +translate_exception
        # Makes all later work of the stream wait for the event.
        void block(const Stream& stream) except +translate_exception
        # Whether the event has happened. True for an event that was never recorded.
        cbool query() except +translate_exception
        # Waits for the event.
        void synchronize() except +translate_exception
        # Milliseconds from this event to the other one. Both must have timing enabled, and must have happened.
        double elapsedTime(const Event& other) except +translate_exception
        Device device() except +translate_exception
        DeviceType device_type() except +translate_exception
        DeviceIndex device_index() noexcept
        EventFlag flag() noexcept
        cbool was_marked_for_recording() noexcept
        # The backend's own event, such as a cudaEvent_t for CUDA.
        void* eventId() noexcept
