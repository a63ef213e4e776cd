// Cython's arithmetic operators and abs(), for the types that C++ instantiates a function for. They behave as in
// Python and torch.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>

#include <cmath>
#include <type_traits>
#include <utility>

namespace interop {
namespace detail {

template <class T>
struct Complex : std::false_type {
  using Real = T;
};
template <class T>
struct Complex<c10::complex<T>> : std::true_type {
  using Real = T;
};

template <class A, class B>
auto common(A a, B b) {
  if constexpr (Complex<A>::value || Complex<B>::value) {
    using X = typename Complex<A>::Real;
    using Y = typename Complex<B>::Real;
    // An integer operand takes the type of the complex one: complex<float> + 7.
    using Real = std::conditional_t<
        std::is_integral_v<X>, Y,
        std::conditional_t<std::is_integral_v<Y>, X, decltype(std::declval<X>() + std::declval<Y>())>>;
    return c10::complex<Real>();
  } else {
    return a + b;
  }
}

// A complex number beside a complex or real number of another floating-point type.
template <class A, class B>
concept MixedComplex =
    (Complex<A>::value || Complex<B>::value) && !std::is_same_v<typename Complex<A>::Real, typename Complex<B>::Real> &&
    (Complex<A>::value || std::is_floating_point_v<A>) && (Complex<B>::value || std::is_floating_point_v<B>);

// The type to compute in: float for a reduced type.
template <class T>
using Computed = std::conditional_t<std::is_arithmetic_v<T>, T, float>;

}  // namespace detail

// The type of a + b.
template <class A, class B>
using Result = decltype(detail::common(std::declval<A>(), std::declval<B>()));

// The type of a / b: a double for two integers.
template <class A, class B>
using Quotient = std::conditional_t<std::is_integral_v<A> && std::is_integral_v<B>, double, Result<A, B>>;

// An integer literal beside a value of type T. It keeps its C++ type if T is an integer, and becomes a T otherwise.
template <class T, class Integer>
constexpr auto literal(Integer value) {
  if constexpr (std::is_integral_v<T>) {
    return value;
  } else {
    return static_cast<T>(value);
  }
}

template <class A, class B>
Quotient<A, B> true_divide(A a, B b) {
  return static_cast<Quotient<A, B>>(a) / static_cast<Quotient<A, B>>(b);
}

// Rounds down, as torch.floor_divide() and Python do.
template <class A, class B>
Result<A, B> floor_divide(A first, B second) {
  using T = Result<A, B>;
  static_assert(!detail::Complex<T>::value, "complex numbers have no `//`");
  if constexpr (std::is_integral_v<T>) {
    const T a = first, b = second;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) {  // dividing the lowest number by -1 would end the process; -a would overflow
        return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
      }
    }
    return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
  } else {
    using Number = detail::Computed<T>;
    const Number a = static_cast<T>(first), b = static_cast<T>(second);
    if (b == 0) {
      return a / b;
    }
    const Number rest = std::fmod(a, b);
    Number quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
      quotient -= 1;
    }
    if (quotient == 0) {
      return std::copysign(Number(0), a / b);
    }
    const Number whole = std::floor(quotient);
    return quotient - whole > Number(0.5) ? whole + 1 : whole;
  }
}

// The result has the sign of the second operand, as in torch.remainder() and Python.
template <class A, class B>
Result<A, B> remainder(A first, B second) {
  using T = Result<A, B>;
  static_assert(!detail::Complex<T>::value, "complex numbers have no `%`");
  if constexpr (std::is_integral_v<T>) {
    const T a = first, b = second;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) {
        return 0;
      }
    }
    const T rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  } else {
    using Number = detail::Computed<T>;
    const Number b = static_cast<T>(second);
    const Number rest = std::fmod(static_cast<Number>(static_cast<T>(first)), b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
}

// For integers, exact modulo 2^bits, as torch.pow() is. An integer to a negative power is the integral part of the
// result: 0, 1 or -1.
template <class A, class B>
Result<A, B> power(A first, B second) {
  using T = Result<A, B>;
  if constexpr (std::is_integral_v<T>) {
    const T a = first;
    T b = second;
    if (b < 0) {
      const T sign = b % 2 == 0 ? 1 : -1;
      return a == 1 ? 1 : a == static_cast<T>(-1) ? sign : 0;
    }
    using Unsigned = std::make_unsigned_t<T>;
    Unsigned result = 1, square = static_cast<Unsigned>(a);
    for (; b; b /= 2, square *= square) {
      result *= b % 2 == 0 ? Unsigned(1) : square;
    }
    return static_cast<T>(result);
  } else if constexpr (detail::Complex<T>::value) {
    return std::pow(static_cast<T>(first), static_cast<T>(second));
  } else {
    using Number = detail::Computed<T>;
    return std::pow(static_cast<Number>(static_cast<T>(first)), static_cast<Number>(static_cast<T>(second)));
  }
}

// The lowest integer is returned unchanged, as by torch.abs(). The result for a complex number is real.
template <class T>
constexpr auto absolute(T x) {
  if constexpr (std::is_unsigned_v<T>) {
    return x;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(
        x < 0 ? 0 - static_cast<std::make_unsigned_t<T>>(x) : static_cast<std::make_unsigned_t<T>>(x));
  } else if constexpr (detail::Complex<T>::value) {
    return std::abs(x);
  } else {
    return static_cast<T>(std::abs(static_cast<detail::Computed<T>>(x)));
  }
}

template <class T>
using Absolute = decltype(absolute(std::declval<T>()));

}  // namespace interop

// c10 has these for numbers of one floating-point type. They are in the global namespace, where Cython's code is.
#define INTEROP_OPERATOR(OP)                                  \
  template <class A, class B>                                 \
    requires interop::detail::MixedComplex<A, B>              \
  interop::Result<A, B> operator OP(const A& a, const B& b) { \
    using T = interop::Result<A, B>;                          \
    return static_cast<T>(a) OP static_cast<T>(b);            \
  }
INTEROP_OPERATOR(+)
INTEROP_OPERATOR(-)
INTEROP_OPERATOR(*)
#undef INTEROP_OPERATOR

// For Cython's check of a divisor: c10 compares a complex number only with its own type.
template <class T>
constexpr bool operator==(const c10::complex<T>& number, int zero) {
  return number.real() == static_cast<T>(zero) && number.imag() == T(0);
}
