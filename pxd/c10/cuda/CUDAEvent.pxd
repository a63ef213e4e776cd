# Facade over interop/cuda/event.h: torch's header compiles only where CUDA's own headers are.
#
# A mark in a CUDA stream, for other streams and the CPU to wait for. The one that is only declared is usable.
from libcpp cimport bool as cbool

from c10.core.Event cimport Event
from c10.core.Stream cimport Stream
from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/event.h" nogil:
    cppclass CUevent_st
    ctypedef CUevent_st* cudaEvent_t "interop::cuda::cudaEvent_t"

cdef extern from "interop/cuda/event.h" namespace "interop::cuda" nogil:
    const unsigned int cudaEventDefault "interop::cuda::event_default"
    const unsigned int cudaEventDisableTiming "interop::cuda::event_disable_timing"

    # All that an Event has, and:
    cppclass CUDAEvent(Event):
        CUDAEvent() noexcept  # cudaEventDisableTiming
        CUDAEvent(unsigned int flags) except +translate_exception
        # On the current stream of the current device.
        void record() except +translate_exception
        void record(const Stream& stream) except +translate_exception
        # Milliseconds.
        float elapsed_time(const CUDAEvent& other) except +translate_exception
        cbool isCreated() noexcept
        cudaEvent_t event() noexcept
