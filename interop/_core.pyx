"""What this build of interop was made with."""

cdef extern from *:
    """
    namespace interop {
    const char* torch_version();
    const char* compiler();
    long cxx_standard();
    }
    """
    const char* torch_version "interop::torch_version"() noexcept
    const char* compiler "interop::compiler"() noexcept
    long cxx_standard "interop::cxx_standard"() noexcept


def build_info():
    """The torch headers, the compiler and the C++ standard that this build was made with."""
    return {
        "torch": torch_version().decode(),
        "compiler": compiler().decode(),
        "cxx_standard": cxx_standard(),
    }
