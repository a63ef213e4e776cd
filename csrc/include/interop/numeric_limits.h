// The limits of an element type, as at::numeric_limits has them, which is in a header for CUDA.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <limits>

namespace interop {

template <class T>
struct numeric_limits : std::numeric_limits<T> {
  using std::numeric_limits<T>::has_infinity;
  static constexpr T lower_bound() noexcept {
    if constexpr (has_infinity) {
      return -std::numeric_limits<T>::infinity();
    } else {
      return std::numeric_limits<T>::lowest();
    }
  }
  static constexpr T upper_bound() noexcept {
    if constexpr (has_infinity) {
      return std::numeric_limits<T>::infinity();
    } else {
      return std::numeric_limits<T>::max();
    }
  }
};

}  // namespace interop
