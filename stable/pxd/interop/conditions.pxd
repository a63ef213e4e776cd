# TORCH_CHECK and its variants, without the GIL: check(x.dim() == 2, b"x must have 2 dimensions, got ", x.dim())
# raises RuntimeError with a message of these parts if the condition is false. A part is a bytes literal or a value
# that C++ can print: a number, a string, sizes, a dtype, a device.
from libcpp cimport bool as cbool

from interop.exceptions cimport translate_exception

cdef extern from "interop/conditions.h" namespace "interop::conditions" nogil:
    void check(cbool condition, const char* message, ...) except +translate_exception
    # Raises IndexError.
    void check_index(cbool condition, const char* message, ...) except +translate_exception
    # Raises TypeError.
    void check_type(cbool condition, const char* message, ...) except +translate_exception
    # Raises ValueError.
    void check_value(cbool condition, const char* message, ...) except +translate_exception
    # Raises NotImplementedError.
    void check_not_implemented(cbool condition, const char* message, ...) except +translate_exception
    # Raises torch.linalg.LinAlgError, for a matrix that has no such inverse, factorisation or solution.
    void check_linalg(cbool condition, const char* message, ...) except +translate_exception
