# Whether this thread records graphs: at.GradMode.is_enabled(). torch.NoGradGuard and torch.AutoGradMode set it.
from libcpp cimport bool as cbool

cdef extern from "c10/core/GradMode.h" namespace "c10" nogil:
    cppclass GradMode:
        @staticmethod
        cbool is_enabled() noexcept
