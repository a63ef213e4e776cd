# TORCH_CHECK and its like, without the GIL: check(x.dim() == 2, b"x must have 2 dimensions, got ", x.dim()) raises
# RuntimeError with a message of these parts, unless the condition holds. A part is a literal of bytes, or what C++ can
# print: a number, a string, sizes, a dtype, a device. Parts are evaluated whether it holds or not; they are printed if
# it does not. Of a SymBool, n.sym_ge(2), it is torch._check().
from libcpp cimport bool as cbool

from c10.core.SymBool cimport SymBool
from interop.exceptions cimport translate_exception

cdef extern from "interop/conditions.h" namespace "interop::conditions" nogil:
    void check(cbool condition, const char* message, ...) except +translate_exception
    void check(const SymBool& condition, const char* message, ...) except +translate_exception
    # Raises IndexError.
    void check_index(cbool condition, const char* message, ...) except +translate_exception
    void check_index(const SymBool& condition, const char* message, ...) except +translate_exception
    # Raises TypeError.
    void check_type(cbool condition, const char* message, ...) except +translate_exception
    # Raises ValueError.
    void check_value(cbool condition, const char* message, ...) except +translate_exception
    void check_value(const SymBool& condition, const char* message, ...) except +translate_exception
    # Raises NotImplementedError.
    void check_not_implemented(cbool condition, const char* message, ...) except +translate_exception
