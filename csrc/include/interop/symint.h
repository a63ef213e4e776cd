// Arithmetic for sizes that may be symbolic, and their conversion to arguments of ATen's functions: see convert.h.
#pragma once

#include <c10/core/SymInt.h>
#include <c10/core/SymIntArrayRef.h>

#include "interop/convert.h"

namespace interop {

namespace symint {

// Python's // and %, for numbers and symbols: c10's own operators round numbers towards zero, and trap for 0.
inline c10::SymInt floordiv(const c10::SymInt& a, const c10::SymInt& b) {
  const auto divisor = b.maybe_as_int(), dividend = a.maybe_as_int();
  TORCH_CHECK_VALUE(divisor != 0, "floordiv: division of ", a, " by zero");
  if (divisor == -1) {
    return -a;  // the processor traps for a quotient that does not fit
  }
  if (!divisor || !dividend) {
    return a / b;
  }
  const int64_t quotient = *dividend / *divisor;
  return quotient - (*dividend % *divisor != 0 && (*dividend < 0) != (*divisor < 0));
}

inline c10::SymInt mod(const c10::SymInt& a, const c10::SymInt& b) {
  const auto divisor = b.maybe_as_int(), dividend = a.maybe_as_int();
  TORCH_CHECK_VALUE(divisor != 0, "mod: division of ", a, " by zero");
  if (!divisor || !dividend) {
    return a % b;
  }
  const int64_t rest = divisor == -1 ? 0 : *dividend % *divisor;
  return rest != 0 && (rest < 0) != (*divisor < 0) ? rest + *divisor : rest;
}

}  // namespace symint

template <>
struct Convert<c10::SymInt> {
  template <class A>
  static constexpr int of = std::is_same_v<A, c10::SymInt> ? 0 : Convert<int64_t>::of<A>;
  static int of_object(PyObject* obj) {
    return Convert<int64_t>::of_object(obj);
  }
  template <class A>
  static c10::SymInt from(const A& a, Argument) {
    if constexpr (std::is_same_v<A, c10::SymInt>) {
      return a;
    } else {
      return c10::SymInt(static_cast<int64_t>(a));
    }
  }
  static c10::SymInt from_object(PyObject* obj, Argument argument) {
    return Convert<int64_t>::from_object(obj, argument);
  }
};

}  // namespace interop
