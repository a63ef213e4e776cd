// at::Scalar of a complex number, by its parts. Modules for many releases of torch have another header of this name.
#pragma once

#include <c10/core/Scalar.h>

namespace interop {

inline c10::Scalar complex_scalar(double real, double imaginary) noexcept {
  return c10::complex<double>(real, imaginary);
}

// The number as something with real() and imag().
inline auto complex_parts(const c10::Scalar& value) {
  return value.toComplexDouble();
}

}  // namespace interop
