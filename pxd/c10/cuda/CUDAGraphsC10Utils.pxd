# Facade over interop/cuda/capture.h: torch's header compiles only if CUDA's own headers are installed.
#
# Whether a CUDA graph captures the current stream.
from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/capture.h" namespace "interop::cuda" nogil:
    enum class CaptureStatus "interop::cuda::CaptureStatus":
        None_  # None is a keyword in Cython
        Active
        Invalidated

    # Creates a context on the current device if there is none.
    CaptureStatus currentStreamCaptureStatusMayInitCtx() except +translate_exception
