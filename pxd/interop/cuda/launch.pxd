# The device and stream of a CUDA kernel. The device of a tensor becomes current for the rest of the function, and
# stream() is the stream that is current there.
#     cdef Launch launch = Launch(x)
#     launch.check(my_kernel(..., launch.stream()), b"my_kernel")
# It never synchronises, so a CUDA graph can capture the launches.
from ATen.core.TensorBase cimport TensorBase
from c10.core.Device cimport Device
from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/launch.h" namespace "interop::cuda" nogil:
    cppclass Launch:
        Launch() noexcept
        Launch(const TensorBase& tensor) noexcept
        Launch(const Device& device) noexcept
        # Takes effect here. Raises torch.AcceleratorError if torch finds no CUDA device.
        Launch& operator=(const Launch& request) except +translate_exception
        # The cudaStream_t.
        void* stream() except +translate_exception
        # Raises torch.AcceleratorError for an error code that a launcher returned; 0 means success.
        void check(int error, const char* kernel) except +translate_exception
