// The types of interop/element_types.pxd for functions that C++ instantiates for each dtype, and their limits.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>

#include <limits>
#include <type_traits>

#include "interop/arithmetic.h"

// The type that a function is instantiated for. Cython has one name for it, so the parameter's type, which must be
// `auto`, cannot supply the type. The parameter's name does, as Cython mangles it. callback_functions.py checks that
// this name is `of`.
#define INTEROP_SCALAR ::std::remove_cvref_t<decltype(*__pyx_v_of)>

namespace interop {

// The types of ATen/OpMathType.h and, for the CPU, of ATen/AccumulateType.h, without the cost of those headers. torch
// has none for uint16, uint32 and uint64.
template <class T>
struct Accumulators {
  static constexpr bool reduced = std::is_class_v<T>;  // every class but c10::complex
  using OpMath = std::conditional_t<reduced, float, T>;
  using Sum = std::conditional_t<
      reduced,
      float,
      std::conditional_t<
          std::is_same_v<T, bool>,
          bool,
          std::conditional_t<
              std::is_integral_v<T>,
              std::conditional_t<std::is_same_v<T, uint64_t>, uint64_t, int64_t>,
              double>>>;
};
template <class T>
struct Accumulators<c10::complex<T>> {
  using OpMath = c10::complex<typename Accumulators<T>::OpMath>;
  using Sum = c10::complex<typename Accumulators<T>::Sum>;
};

template <class T>
using OpMath = typename Accumulators<T>::OpMath;
template <class T>
using Sum = typename Accumulators<T>::Sum;

// Several dtypes under one name.
template <c10::ScalarType... types>
struct TypeSet {};
template <c10::ScalarType... a, c10::ScalarType... b>
constexpr TypeSet<a..., b...> operator+(TypeSet<a...>, TypeSet<b...>) {
  return {};
}

// The sets of ATen/Dispatch_v2.h. AT_REDUCED_FLOATING_TYPES has the types of AT_DISPATCH_REDUCED_FLOATING_TYPES.
namespace type_sets {
inline constexpr TypeSet<c10::kByte, c10::kChar, c10::kInt, c10::kLong, c10::kShort> integral{};
inline constexpr TypeSet<c10::kUInt16, c10::kUInt32, c10::kUInt64> barebones_unsigned{};
inline constexpr TypeSet<c10::kDouble, c10::kFloat> floating{};
inline constexpr TypeSet<c10::kHalf, c10::kBFloat16> reduced_floating{};
inline constexpr TypeSet<
    c10::kFloat8_e5m2,
    c10::kFloat8_e5m2fnuz,
    c10::kFloat8_e4m3fn,
    c10::kFloat8_e4m3fnuz,
    c10::kFloat8_e8m0fnu>
    float8{};
inline constexpr TypeSet<c10::kComplexDouble, c10::kComplexFloat> complex{};
inline constexpr auto integral_v2 = integral + barebones_unsigned;
inline constexpr auto all = integral + floating;
inline constexpr auto all_and_complex = all + complex;
}  // namespace type_sets

// Like at::numeric_limits, which is in a CUDA header.
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
