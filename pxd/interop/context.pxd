# torch's global settings, under their Python names. They apply to all threads, but set_flush_denormal() sets a CPU
# flag of the calling thread only.
from libcpp cimport bool as cbool
from libcpp.string cimport string

from c10.core.ScalarType cimport ScalarType
from interop.exceptions cimport translate_exception

cdef extern from "interop/context.h" namespace "interop::context" nogil:
    cbool are_deterministic_algorithms_enabled() except +translate_exception
    cbool is_deterministic_algorithms_warn_only_enabled() except +translate_exception
    void use_deterministic_algorithms(cbool mode) except +translate_exception
    void use_deterministic_algorithms(cbool mode, cbool warn_only) except +translate_exception
    # Call it in an operation of yours that is not deterministic: raises or warns, as the setting says.
    void alert_not_deterministic(const char* caller) except +translate_exception

    string get_float32_matmul_precision() except +translate_exception
    void set_float32_matmul_precision(const string& precision) except +translate_exception

    cbool set_flush_denormal(cbool mode) except +translate_exception  # False if the CPU cannot

    ScalarType get_default_dtype() except +translate_exception
    void set_default_dtype(ScalarType dtype) except +translate_exception

    cbool get_cudnn_enabled() except +translate_exception
    void set_cudnn_enabled(cbool enabled) except +translate_exception
    cbool get_cudnn_benchmark() except +translate_exception
    void set_cudnn_benchmark(cbool benchmark) except +translate_exception
    cbool get_cudnn_deterministic() except +translate_exception
    void set_cudnn_deterministic(cbool deterministic) except +translate_exception
