from libcpp cimport bool as cbool

cdef extern from "interop/guards.h" namespace "interop" nogil:
    # Thread-local modes that last from the function's beginning (or, given a flag, from that statement) to its end.
    cppclass NoGradGuard:
        NoGradGuard() noexcept

    cppclass AutoGradMode:
        AutoGradMode() noexcept
        AutoGradMode(cbool enabled) noexcept

    cppclass InferenceMode:
        InferenceMode() noexcept
        InferenceMode(cbool enabled) noexcept
