// The ScalarType of a C++ type.
#pragma once

#include <c10/core/ScalarType.h>

#include <complex>
#include <cstdint>
#include <type_traits>

namespace interop {

// Finds c10's own types by name, and integers by size and sign, so that `long` and `long long` are both int64. It
// also takes std::complex, the type of Cython's complex numbers.
template <class T>
constexpr c10::ScalarType scalar_type_of() noexcept {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, std::complex<float>>) {
    return c10::ScalarType::ComplexFloat;
  } else if constexpr (std::is_same_v<U, std::complex<double>>) {
    return c10::ScalarType::ComplexDouble;
  } else if constexpr (std::is_integral_v<U> && !std::is_same_v<U, bool>) {
    constexpr c10::ScalarType of_size[] = {
        std::is_signed_v<U> ? c10::ScalarType::Char : c10::ScalarType::Byte,
        std::is_signed_v<U> ? c10::ScalarType::Short : c10::ScalarType::UInt16,
        std::is_signed_v<U> ? c10::ScalarType::Int : c10::ScalarType::UInt32,
        std::is_signed_v<U> ? c10::ScalarType::Long : c10::ScalarType::UInt64};
    return of_size[sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 1 : sizeof(U) == 4 ? 2 : 3];
  } else {
    return c10::CppTypeToScalarType<U>::value;
  }
}

}  // namespace interop
