# What a CUDA kernel asks of its arguments. Each raises an exception that names the argument and the way out.
from ATen.core.TensorBase cimport TensorBase
from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/check.h" namespace "interop::cuda" nogil:
    # On a CUDA device.
    void check_device(const TensorBase& tensor, const char* argument) except +translate_exception
    # On the CUDA device of another argument.
    void check_same_device(
        const TensorBase& tensor, const char* argument, const TensorBase& first, const char* first_argument,
    ) except +translate_exception
    # float32, float64, float16 or bfloat16.
    void check_floating(const TensorBase& tensor, const char* argument) except +translate_exception
    # On a CUDA device, with memory that holds its values: what must be known before its pointer is used.
    void check_data(const TensorBase& tensor, const char* argument) except +translate_exception
