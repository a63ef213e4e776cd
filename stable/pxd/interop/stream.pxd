# The current stream of an accelerator: `from interop.stream cimport current_native_stream`.
from c10.core.Device cimport Device
from interop.exceptions cimport translate_exception

cdef extern from "interop/stream.h" namespace "interop" nogil:
    # The backend's own stream: a cudaStream_t for CUDA. NULL for the CPU, and for CUDA's default stream.
    void* current_native_stream(const Device& device) except +translate_exception
