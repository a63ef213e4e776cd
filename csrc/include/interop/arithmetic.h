// What the operators `/`, `//`, `%` and `**` and abs() of Cython are for the types that C++ instantiates a function for.
// Cython takes these types for floating-point numbers and would write float's functions for them.
#pragma once

#include <c10/util/complex.h>

#include <cmath>
#include <type_traits>

namespace interop {
namespace detail {

template <class T>
constexpr bool is_integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// With whom a reduced type computes.
template <class T>
using Computed = std::conditional_t<std::is_arithmetic_v<T>, T, float>;

// 0 - x, which wraps: -x of the lowest number is undefined in C++.
template <class T>
constexpr T negative(T x) {
  using Unsigned = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<Unsigned>(0) - static_cast<Unsigned>(x));
}

}  // namespace detail

template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<c10::complex<T>> : std::true_type {};

// An integer that is written beside such a type: among integers it is what C++ takes it for, else of the type.
template <class T, class Integer>
constexpr auto literal(Integer value) {
  if constexpr (std::is_integral_v<T>) {
    return value;
  } else {
    return static_cast<T>(value);
  }
}

// Of two integers, the quotient as a double, as torch.true_divide() and Python give a floating-point number.
template <class T>
constexpr auto true_divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<double>(a) / static_cast<double>(b);
  } else {
    return a / b;
  }
}

// Rounded down, as torch.floor_divide() and Python do.
template <class T>
T floor_divide(T a, T b) {
  static_assert(!IsComplex<T>::value, "complex numbers have no `//`");
  if constexpr (detail::is_integer<T>) {
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) {  // a division of the lowest number by -1 ends the process
        return detail::negative(a);
      }
    }
    const T quotient = a / b;
    return static_cast<T>(quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0));
  } else if constexpr (std::is_same_v<T, bool>) {
    return a && b;
  } else {
    using Number = detail::Computed<T>;
    const Number x = a, y = b;
    if (y == 0) {
      return x / y;
    }
    const Number rest = std::fmod(x, y);
    Number quotient = (x - rest) / y;
    if (rest != 0 && (rest < 0) != (y < 0)) {
      quotient -= 1;
    }
    if (quotient == 0) {
      return std::copysign(Number(0), x / y);
    }
    const Number whole = std::floor(quotient);
    return quotient - whole > Number(0.5) ? whole + 1 : whole;
  }
}

// With the sign of `b`, as torch.remainder() and Python give it.
template <class T>
T remainder(T a, T b) {
  static_assert(!IsComplex<T>::value, "complex numbers have no `%`");
  if constexpr (detail::is_integer<T>) {
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) {
        return 0;
      }
    }
    const T rest = a % b;
    return static_cast<T>(rest + ((rest != 0 && (rest < 0) != (b < 0)) ? b : 0));
  } else if constexpr (std::is_same_v<T, bool>) {
    return a && !b;
  } else {
    using Number = detail::Computed<T>;
    const Number y = b;
    const Number rest = std::fmod(static_cast<Number>(a), y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  }
}

// Of integers, exact modulo 2^bits, as torch.pow() is. An integer to a negative power is the whole part: 0, or 1 or -1.
template <class T>
T power(T a, T b) {
  if constexpr (detail::is_integer<T>) {
    if (b < 0) {
      const T sign = b % 2 == 0 ? 1 : static_cast<T>(-1);
      return a == 1 ? 1 : a + 1 == 0 ? sign : 0;
    }
    using Unsigned = std::make_unsigned_t<std::common_type_t<T, int>>;  // so that a product never overflows
    Unsigned result = 1, square = static_cast<Unsigned>(a);
    for (; b; b /= 2, square *= square) {
      result *= b % 2 == 0 ? Unsigned(1) : square;
    }
    return static_cast<T>(result);
  } else if constexpr (std::is_same_v<T, bool>) {
    return a || !b;
  } else if constexpr (IsComplex<T>::value) {
    return std::pow(a, b);
  } else {
    return std::pow(static_cast<detail::Computed<T>>(a), static_cast<detail::Computed<T>>(b));
  }
}

// The lowest integer stays as it is, as in torch.abs().
template <class T>
constexpr auto absolute(T x) {
  if constexpr (detail::is_integer<T> && std::is_signed_v<T>) {
    return x < 0 ? detail::negative(x) : x;
  } else if constexpr (std::is_integral_v<T>) {
    return x;
  } else if constexpr (IsComplex<T>::value) {
    return std::abs(x);
  } else {
    return static_cast<T>(std::abs(static_cast<detail::Computed<T>>(x)));
  }
}

}  // namespace interop
