# Facade over interop/cuda/capture.h: torch's header compiles only where CUDA's own headers are.
#
# Whether a CUDA graph captures the current stream. It makes no context on a device that has none.
from libcpp.string cimport string

from c10.cuda.CUDAGraphsC10Utils cimport CaptureStatus
from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/capture.h" namespace "interop::cuda" nogil:
    CaptureStatus currentStreamCaptureStatus() except +translate_exception
    # Raises RuntimeError during a capture; `attempt` says what cannot be captured.
    void assertNotCapturing(const string& attempt) except +translate_exception
