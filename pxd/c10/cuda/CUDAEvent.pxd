# Facade over interop/cuda/event.h: torch's header compiles only if CUDA's own headers are installed.
#
# A mark in a CUDA stream, for which other streams and the CPU can wait. A declared variable is a usable event.
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

    # Everything that Event has, and:
    cppclass CUDAEvent(Event):
        CUDAEvent() noexcept  # cudaEventDisableTiming
        CUDAEvent(unsigned int flags) except +translate_exception
        # Records on the current stream of the current device.
        void record() except +translate_exception
        void record(const Stream& stream) except +translate_exception
        # In milliseconds.
        float elapsed_time(const CUDAEvent& other) except +translate_exception
        cbool isCreated() noexcept
        cudaEvent_t event() noexcept
