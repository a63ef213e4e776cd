// The checks of torch's header of this name. Their errors are known only to this module. A message consists of values
// that C++ can print.
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include <sstream>

#include "c10/core/Device.h"
#include "c10/util/ArrayRef.h"
#include "interop/stable/errors.h"

namespace c10 {

inline std::ostream& operator<<(std::ostream& out, const Device& device) {
  return out << device.str();
}

template <class T>
std::ostream& operator<<(std::ostream& out, ArrayRef<T> values) {
  out << '[';
  const char* before = "";
  for (const T& value : values) {
    out << before << value;
    before = ", ";
  }
  return out << ']';
}

}  // namespace c10

namespace interop::stable {

template <class... A>
[[noreturn]] __attribute__((noinline, cold)) void raise_printed(Kind kind, const A&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Error(kind, text.str().c_str());
}

}  // namespace interop::stable

#define INTEROP_CHECK(kind, condition, ...)                                                       \
  do {                                                                                            \
    if (!(condition)) [[unlikely]] {                                                              \
      ::interop::stable::raise_printed(::interop::stable::Kind::kind __VA_OPT__(, ) __VA_ARGS__); \
    }                                                                                             \
  } while (false)
#define TORCH_CHECK(condition, ...) INTEROP_CHECK(runtime, condition, __VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) INTEROP_CHECK(type, condition, __VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) INTEROP_CHECK(value, condition, __VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) INTEROP_CHECK(index, condition, __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) INTEROP_CHECK(not_implemented, condition, __VA_ARGS__)
#define TORCH_CHECK_LINALG(condition, ...) INTEROP_CHECK(linalg, condition, __VA_ARGS__)
