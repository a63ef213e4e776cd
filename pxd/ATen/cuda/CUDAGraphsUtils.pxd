# Facade over interop/cuda/capture.h: torch's header compiles only if CUDA's own headers are installed.
#
# Whether a CUDA graph captures the current stream. Never creates a context on a device that has none.
from libcpp.string cimport string

from c10.cuda.CUDAGraphsC10Utils cimport CaptureStatus
from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/capture.h" namespace "interop::cuda" nogil:
    CaptureStatus currentStreamCaptureStatus() except +translate_exception
    # Raises RuntimeError during a capture. `attempt` names the operation that cannot be captured.
    void assertNotCapturing(const string& attempt) except +translate_exception
