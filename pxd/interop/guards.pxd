# Thread-local modes. Each begins where it is assigned and ends with the function, however that ends:
#     cdef torch.NoGradGuard _guard = torch.NoGradGuard()
# Only declared, it does nothing: Cython leaves a variable out that is never used. (interop.build refuses that.)
from libcpp cimport bool as cbool

cdef extern from "interop/guards.h" namespace "interop" nogil:
    # No graph is recorded.
    cppclass NoGradGuard:
        NoGradGuard() noexcept

    # Graphs are recorded or not. The one without a flag is for the declaration alone and changes nothing.
    cppclass AutoGradMode:
        AutoGradMode() noexcept
        AutoGradMode(cbool enabled) noexcept

    # For kernels of the key Autograd: operators that are called go to the kernels below it, and leave no graph.
    cppclass AutoDispatchBelowAutograd:
        AutoDispatchBelowAutograd() noexcept

    # Inference mode; with the flag False, out of it again.
    cppclass InferenceMode:
        InferenceMode() noexcept
        InferenceMode(cbool enabled) noexcept

        @staticmethod
        cbool is_enabled() noexcept  # on this thread
