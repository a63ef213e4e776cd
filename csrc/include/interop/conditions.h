// TORCH_CHECK and its like as functions, for Cython, which has no macros.
#pragma once

#include <c10/util/Exception.h>

#include <type_traits>

#include "interop/device.h"
#include "interop/unwrap_reference.h"

namespace interop::conditions {

namespace detail {

// Of a symbolic condition, a c10::SymBool, what torch._check() does: it is taken to be true, and checked when what is
// compiled runs. (Named here, it could not be left out for a module that runs with many releases of torch.)
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
    return static_cast<int>(part);  // a number, such as the index of a device, and no character
  } else {
    return unwrap_reference(part);
  }
}

}  // namespace detail

// The text is made when the condition has failed.
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

}  // namespace interop::conditions
