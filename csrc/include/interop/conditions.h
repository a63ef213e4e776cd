// TORCH_CHECK and its variants as functions, because Cython has no macros.
#pragma once

#include <c10/util/Exception.h>

#include <type_traits>

#include "interop/device.h"
#include "interop/unwrap_reference.h"

namespace interop::conditions {

namespace detail {

// Treats a symbolic condition, a c10::SymBool, as torch._check() does: assumes that it is true, and checks it when
// the compiled code runs. (The type is not named here, so that stable modules can do without it.)
template <class C>
bool holds(const C& condition) {
  if constexpr (requires { condition.expect_true(__FILE__, __LINE__); }) {
    return condition.expect_true(__FILE__, __LINE__);
  } else {
    return condition;
  }
}

template <class A>
decltype(auto) printed(const A& part) {
  if constexpr (std::is_same_v<A, Device>) {
    return static_cast<c10::Device>(part);
  } else if constexpr (std::is_same_v<A, signed char> || std::is_same_v<A, unsigned char>) {
    return static_cast<int>(part);  // a number, such as a device index, and not a character
  } else {
    return unwrap_reference(part);
  }
}

}  // namespace detail

// The message is built only if the condition fails.
template <class C, class... A>
void check(const C& condition, const A&... message) {
  TORCH_CHECK(detail::holds(condition), detail::printed(message)...);
}
template <class C, class... A>
void check_index(const C& condition, const A&... message) {
  TORCH_CHECK_INDEX(detail::holds(condition), detail::printed(message)...);
}
template <class C, class... A>
void check_type(const C& condition, const A&... message) {
  TORCH_CHECK_TYPE(detail::holds(condition), detail::printed(message)...);
}
template <class C, class... A>
void check_value(const C& condition, const A&... message) {
  TORCH_CHECK_VALUE(detail::holds(condition), detail::printed(message)...);
}
template <class C, class... A>
void check_not_implemented(const C& condition, const A&... message) {
  TORCH_CHECK_NOT_IMPLEMENTED(detail::holds(condition), detail::printed(message)...);
}
template <class C, class... A>
void check_linalg(const C& condition, const A&... message) {
  TORCH_CHECK_LINALG(detail::holds(condition), detail::printed(message)...);
}

}  // namespace interop::conditions
