// The ScalarType of a C++ type, like the header of this name for one release of torch.
#pragma once

#include <type_traits>

#include "c10/core/ScalarType.h"

namespace interop {

template <class T>
constexpr c10::ScalarType scalar_type_of() noexcept {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, bool>) {
    return c10::kBool;
  } else if constexpr (std::is_integral_v<U>) {
    constexpr c10::ScalarType of_size[] = {
        std::is_signed_v<U> ? c10::kChar : c10::kByte, std::is_signed_v<U> ? c10::kShort : c10::kUInt16,
        std::is_signed_v<U> ? c10::kInt : c10::kUInt32, std::is_signed_v<U> ? c10::kLong : c10::kUInt64};
    return of_size[sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 1 : sizeof(U) == 4 ? 2 : 3];
  } else if constexpr (std::is_same_v<U, float>) {
    return c10::kFloat;
  } else if constexpr (std::is_same_v<U, double>) {
    return c10::kDouble;
  } else if constexpr (std::is_same_v<U, c10::Half>) {
    return c10::kHalf;
  } else if constexpr (std::is_same_v<U, c10::BFloat16>) {
    return c10::kBFloat16;
  } else if constexpr (requires(const U& number) {
                         typename U::value_type;
                         number.imag();
                       }) {  // std::complex, Cython's complex type, and c10::complex
    return sizeof(U) == 4 ? c10::kComplexHalf : sizeof(U) == 8 ? c10::kComplexFloat : c10::kComplexDouble;
  } else {
    return c10::CppTypeToScalarType<U>::value;  // from torch/headeronly/core/ScalarType.h
  }
}

}  // namespace interop
