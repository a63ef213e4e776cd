# Thread-local modes. Each takes effect on assignment and ends when the function returns or raises:
#     cdef torch.NoGradGuard _guard = torch.NoGradGuard()
from libcpp cimport bool as cbool

cdef extern from "interop/guards.h" namespace "interop" nogil:
    # Records no graph.
    cppclass NoGradGuard:
        NoGradGuard() noexcept

    # Enables or disables recording. The default constructor exists for the declaration only and changes nothing.
    cppclass AutoGradMode:
        AutoGradMode() noexcept
        AutoGradMode(cbool enabled) noexcept
