// exp and related functions for one float or double, without branches, so that g++ vectorises loops that call them.
//
// Results are within 3 units in the last place of the exact value (tests/operators/test_vector_math.py), and those of
// torch for infinities, nan and values out of range. See instruction_sets.h for how to compile and call such a loop.
#pragma once

#include <ATen/OpMathType.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace interop {

namespace detail {

template <class T>
struct Float;

template <>
struct Float<float> {
  using Bits = uint32_t;
  static constexpr int exponent_bias = 127;
  static constexpr float round = 0x1.8p23F;  // adding it leaves the nearest integer in the last bits
  static constexpr float ln2_high = 0x1.62e4p-1F, ln2_low = 0x1.7f7d1cp-20F;
  static constexpr float zero_below = -104, minus_one_below = -18, infinite_above = 88.9F;
};

template <>
struct Float<double> {
  using Bits = uint64_t;
  static constexpr int exponent_bias = 1023;
  static constexpr double round = 0x1.8p52;
  static constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
  static constexpr double zero_below = -746, minus_one_below = -38, infinite_above = 709.9;
};

template <class T>
inline constexpr int mantissa_bits = std::numeric_limits<T>::digits - 1;

template <class T>
using Bits = typename Float<T>::Bits;

// 2^n, given n with `round` added. The result for nan is some number.
template <class T>
[[gnu::always_inline]] inline T power_of_two(T rounded) noexcept {
  return std::bit_cast<T>((std::bit_cast<Bits<T>>(rounded) + Float<T>::exponent_bias) << mantissa_bits<T>);
}

// x = n ln 2 + r, with |r| <= ln 2 / 2. Returns n with `round` added.
template <class T>
[[gnu::always_inline]] inline T range_reduce(T x, T& r) noexcept {
  using F = Float<T>;
  constexpr T log2_e = 0x1.71547652b82fep+0;
  const T rounded = x * log2_e + F::round;
  const T n = rounded - F::round;
  r = (x - n * F::ln2_high) - n * F::ln2_low;
  return rounded;
}

// exp(r) - 1 for |r| <= ln 2 / 2: its Taylor series, up to the term that is too small to matter.
template <class T>
[[gnu::always_inline]] inline T expm1_series(T r) noexcept {
  constexpr double factorials[] = {2, 6, 24, 120, 720, 5040, 40320, 362880, 3628800, 39916800, 479001600, 6227020800};
  constexpr int terms = std::is_same_v<T, float> ? 6 : 12;
  T sum = T(1 / factorials[terms - 1]);
#pragma GCC unroll 12
  for (int k = terms - 2; k >= 0; --k) {
    sum = sum * r + T(1 / factorials[k]);
  }
  return sum * r * r + r;
}

template <class T>
[[gnu::always_inline]] inline T clamp(T x, T low, T high) noexcept {
  x = x < low ? low : x;  // nan stays
  return x > high ? high : x;
}

}  // namespace detail

// An element in the type that ATen's kernels compute with: float for BFloat16 and Half.
template <class T>
[[gnu::always_inline]] inline at::opmath_type<T> widen(T x) noexcept {
  return x;
}

template <class T>
[[gnu::always_inline]] inline T exp(T x) noexcept {
  using F = detail::Float<T>;
  T r;
  const T rounded = detail::range_reduce(detail::clamp(x, F::zero_below, F::infinite_above), r);
  // Scales in two steps, because 2^n is out of range before the result is.
  const T half = (rounded - F::round) * T(0.5) + F::round;
  const T rest = rounded - (half - F::round);
  const T p = detail::expm1_series(r);
  const T scale = detail::power_of_two(half);
  return (scale + scale * p) * detail::power_of_two(rest);
}

// exp(x) - 1, accurate near 0 as well.
template <class T>
[[gnu::always_inline]] inline T expm1(T x) noexcept {
  using F = detail::Float<T>;
  T r;
  const T rounded = detail::range_reduce(detail::clamp(x, F::minus_one_below, F::infinite_above), r);
  const T half_scale = detail::power_of_two(rounded - 1);  // 2^n itself may be out of range
  const T half = (half_scale - T(0.5)) + half_scale * detail::expm1_series(r);
  return half + half;
}

template <class T>
[[gnu::always_inline]] inline T abs(T x) noexcept {
  return std::bit_cast<T>(std::bit_cast<detail::Bits<T>>(x) & ~(detail::Bits<T>(1) << (8 * sizeof(T) - 1)));
}

// 1 / (1 + exp(-x)).
template <class T>
[[gnu::always_inline]] inline T sigmoid(T x) noexcept {
  const T e = exp(-abs(x));  // at most 1, so that nothing overflows
  return (x < 0 ? e : T(1)) / (1 + e);
}

template <class T>
[[gnu::always_inline]] inline T tanh(T x) noexcept {
  const T e = expm1(-2 * abs(x));
  return (x < 0 ? e : -e) / (e + 2);
}

// x if it is positive, exp(x) - 1 otherwise.
template <class T>
[[gnu::always_inline]] inline T elu(T x) noexcept {
  const T e = expm1(x > 0 ? T(0) : x);
  return x > 0 ? x : e;
}

}  // namespace interop
