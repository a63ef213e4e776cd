# cython: freethreading_compatible=True
"""The compiled half of interop: what this build was made with, and what modules register with."""

cdef extern from *:
    """
    namespace interop {
    const char* torch_version();
    const char* compiler();
    long cxx_standard();
    PyObject* make_runtime_capsule();
    }
    """
    const char* torch_version "interop::torch_version"() noexcept
    const char* compiler "interop::compiler"() noexcept
    long cxx_standard "interop::cxx_standard"() noexcept
    object make_runtime_capsule "interop::make_runtime_capsule"()


def build_info():
    """The torch headers, the compiler and the C++ standard that this build was made with."""
    return {
        "torch": torch_version().decode(),
        "compiler": compiler().decode(),
        "cxx_standard": cxx_standard(),
    }


# Modules that register operators look for it: see interop/runtime.h, which has the name.
_runtime_5 = make_runtime_capsule()
