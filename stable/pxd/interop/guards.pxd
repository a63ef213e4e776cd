# Thread-local modes. Each begins where it is assigned and ends with the function, however that ends:
#     cdef torch.NoGradGuard _guard = torch.NoGradGuard()
from libcpp cimport bool as cbool

cdef extern from "interop/guards.h" namespace "interop" nogil:
    # No graph is recorded.
    cppclass NoGradGuard:
        NoGradGuard() noexcept

    # Graphs are recorded or not. The one without a flag is for the declaration alone and changes nothing.
    cppclass AutoGradMode:
        AutoGradMode() noexcept
        AutoGradMode(cbool enabled) noexcept
