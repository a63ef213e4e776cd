from interop.exceptions cimport translate_exception

cdef extern from "interop/warnings.h" namespace "interop":
    # Collects this thread's TORCH_WARN messages from the start of the function; emit() turns them into Python warnings.
    cppclass WarningScope:
        WarningScope() except +translate_exception nogil
        void emit() except +translate_exception
