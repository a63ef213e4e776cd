// Makes an at::Scalar from the parts of a complex number. Stable modules have another header of this name.
#pragma once

#include <c10/core/Scalar.h>

namespace interop {

inline c10::Scalar complex_scalar(double real, double imaginary) noexcept {
  return c10::complex<double>(real, imaginary);
}

// The value, as an object with real() and imag().
inline auto complex_parts(const c10::Scalar& value) {
  return value.toComplexDouble();
}

}  // namespace interop
