// torch's global settings as plain functions, with their names in Python.
#pragma once

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>

#include <string>

namespace interop::context {

inline bool are_deterministic_algorithms_enabled() {
  return at::globalContext().deterministicAlgorithms();
}
inline bool is_deterministic_algorithms_warn_only_enabled() {
  return at::globalContext().deterministicAlgorithmsWarnOnly();
}
inline void use_deterministic_algorithms(bool mode, bool warn_only = false) {
  at::globalContext().setDeterministicAlgorithms(mode, warn_only);
}

inline std::string get_float32_matmul_precision() {
  switch (at::globalContext().float32MatmulPrecision()) {
    case at::Float32MatmulPrecision::HIGHEST:
      return "highest";
    case at::Float32MatmulPrecision::HIGH:
      return "high";
    case at::Float32MatmulPrecision::MEDIUM:
      return "medium";
  }
  TORCH_CHECK(false, "float32 matmul precision has a value that this torch does not name");
}

// Raises for an unknown word. torch itself only warns and continues.
inline void set_float32_matmul_precision(const std::string& precision) {
  TORCH_CHECK_VALUE(
      precision == "highest" || precision == "high" || precision == "medium",
      "argument 'precision' must be 'highest', 'high' or 'medium', got '", precision, "'");
  at::globalContext().setFloat32MatmulPrecision(precision);
}

inline bool set_flush_denormal(bool mode) {
  return at::globalContext().setFlushDenormal(mode);
}

inline c10::ScalarType get_default_dtype() {
  return c10::get_default_dtype_as_scalartype();
}
// Raises as in Python. ATen accepts any type, and reports an error only later.
inline void set_default_dtype(c10::ScalarType dtype) {
  TORCH_CHECK_TYPE(
      c10::isFloatingType(dtype), "argument 'dtype' must be a floating-point type, got ", c10::toString(dtype));
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(dtype));
}

inline bool get_cudnn_enabled() {
  return at::globalContext().userEnabledCuDNN();
}
inline void set_cudnn_enabled(bool enabled) {
  at::globalContext().setUserEnabledCuDNN(enabled);
}
inline bool get_cudnn_benchmark() {
  return at::globalContext().benchmarkCuDNN();
}
inline void set_cudnn_benchmark(bool benchmark) {
  at::globalContext().setBenchmarkCuDNN(benchmark);
}
inline bool get_cudnn_deterministic() {
  return at::globalContext().deterministicCuDNN();
}
inline void set_cudnn_deterministic(bool deterministic) {
  at::globalContext().setDeterministicCuDNN(deterministic);
}

inline void alert_not_deterministic(const char* caller) {
  at::Context::alertNotDeterministic(caller);
}

}  // namespace interop::context
