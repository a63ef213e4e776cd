# Checks of a CUDA kernel's arguments. The exceptions name the argument and say what to do.
from ATen.core.TensorBase cimport TensorBase
from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/check.h" namespace "interop::cuda" nogil:
    # Requires a CUDA device.
    void check_device(const TensorBase& tensor, const char* argument) except +translate_exception
    # Requires the CUDA device of another argument.
    void check_same_device(
        const TensorBase& tensor, const char* argument, const TensorBase& first, const char* first_argument,
    ) except +translate_exception
    # Requires float32, float64, float16 or bfloat16.
    void check_floating(const TensorBase& tensor, const char* argument) except +translate_exception
    # Requires a CUDA device, and memory that holds the values. Check this before using the data pointer.
    void check_data(const TensorBase& tensor, const char* argument) except +translate_exception
