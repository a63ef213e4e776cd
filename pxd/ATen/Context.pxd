# torch's global settings, by the names that they have in Python. They hold for all threads, except is_grad_enabled().
from libc.stdint cimport uint64_t
from libcpp cimport bool as cbool
from libcpp.string cimport string

from c10.core.ScalarType cimport ScalarType
from interop.exceptions cimport translate_exception

cdef extern from "ATen/Context.h" namespace "at" nogil:
    # Seeds the CPU's generator and those of all GPUs, as torch.manual_seed() does.
    void manual_seed(uint64_t seed) except +translate_exception

    # What this torch was built with and, for devices, finds.
    cbool hasCUDA() except +translate_exception
    cbool hasHIP() except +translate_exception
    cbool hasXPU() except +translate_exception
    cbool hasMPS() except +translate_exception
    cbool hasMTIA() except +translate_exception
    cbool hasXLA() except +translate_exception
    cbool hasHPU() except +translate_exception
    cbool hasMKL() except +translate_exception
    cbool hasMKLDNN() except +translate_exception
    cbool hasLAPACK() except +translate_exception
    cbool hasOpenMP() except +translate_exception
    cbool hasMAGMA() except +translate_exception
    size_t getNumGPUs() except +translate_exception

cdef extern from "interop/context.h" namespace "interop::context" nogil:
    cbool are_deterministic_algorithms_enabled() except +translate_exception
    cbool is_deterministic_algorithms_warn_only_enabled() except +translate_exception
    void use_deterministic_algorithms(cbool mode) except +translate_exception
    void use_deterministic_algorithms(cbool mode, cbool warn_only) except +translate_exception
    # For an operation of one's own that has no deterministic way: raises or warns where the setting asks for that.
    void alert_not_deterministic(const char* caller) except +translate_exception

    string get_float32_matmul_precision() except +translate_exception
    void set_float32_matmul_precision(const string& precision) except +translate_exception

    cbool set_flush_denormal(cbool mode) except +translate_exception  # False where the CPU cannot

    ScalarType get_default_dtype() except +translate_exception
    void set_default_dtype(ScalarType dtype) except +translate_exception

    cbool get_cudnn_enabled() except +translate_exception
    void set_cudnn_enabled(cbool enabled) except +translate_exception
    cbool get_cudnn_benchmark() except +translate_exception
    void set_cudnn_benchmark(cbool benchmark) except +translate_exception
    cbool get_cudnn_deterministic() except +translate_exception
    void set_cudnn_deterministic(cbool deterministic) except +translate_exception

cdef extern from "c10/core/GradMode.h" nogil:
    cbool is_grad_enabled "c10::GradMode::is_enabled"() noexcept  # on this thread

cdef extern from "c10/core/InferenceMode.h" nogil:
    cbool is_inference_mode_enabled "c10::InferenceMode::is_enabled"() noexcept  # on this thread
