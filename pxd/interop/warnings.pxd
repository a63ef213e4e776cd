from interop.exceptions cimport translate_exception

cdef extern from "interop/warnings.h" namespace "interop":
    # Collects what TORCH_WARN says on this thread, from the function's beginning; emit() makes Python warnings of it.
    cppclass WarningScope:
        WarningScope() except +translate_exception nogil
        void emit() except +translate_exception
