// A complex at::Scalar from its parts, and back.
#pragma once

#include "c10/core/Scalar.h"

namespace interop {

inline c10::Scalar complex_scalar(double real, double imaginary) noexcept {
  return c10::Scalar::of_complex(real, imaginary);
}

// The number as an object with real() and imag().
inline auto complex_parts(const c10::Scalar& value) {
  struct Parts {
    double re, im;
    double real() const noexcept {
      return re;
    }
    double imag() const noexcept {
      return im;
    }
  };
  return Parts{value.real(), value.imag()};
}

}  // namespace interop
