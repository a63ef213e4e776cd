// Sizes that may be symbolic, as arguments of ATen's functions that take them: see convert.h.
#pragma once

#include <c10/core/SymInt.h>
#include <c10/core/SymIntArrayRef.h>

#include "interop/convert.h"

namespace interop {

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
