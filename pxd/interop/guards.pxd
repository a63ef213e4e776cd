# Thread-local modes. Each takes effect on assignment and ends when the function returns or raises:
#     cdef torch.NoGradGuard _guard = torch.NoGradGuard()
# Declaring a guard is not enough: Cython drops variables that are never used. (interop.build rejects that.)
from libcpp cimport bool as cbool

cdef extern from "interop/guards.h" namespace "interop" nogil:
    # Records no graph.
    cppclass NoGradGuard:
        NoGradGuard() noexcept

    # Enables or disables recording. The default constructor exists for the declaration only and changes nothing.
    cppclass AutoGradMode:
        AutoGradMode() noexcept
        AutoGradMode(cbool enabled) noexcept

    # For kernels of the key Autograd: operators are dispatched to the kernels below it, and record no graph.
    cppclass AutoDispatchBelowAutograd:
        AutoDispatchBelowAutograd() noexcept

    # Enables inference mode; with the flag False, disables it.
    cppclass InferenceMode:
        InferenceMode() noexcept
        InferenceMode(cbool enabled) noexcept

        @staticmethod
        cbool is_enabled() noexcept  # on this thread
