// A number of any element type.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "c10/core/ScalarType.h"
#include "interop/stable/errors.h"

namespace c10 {

class Scalar {
 public:
  Scalar() noexcept : Scalar(int64_t{0}) {}
  Scalar(bool value) noexcept : type_(kBool), integer_(value) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Scalar(T value) noexcept : type_(kLong), integer_(static_cast<int64_t>(value)) {
    if constexpr (std::unsigned_integral<T> && sizeof(T) == sizeof(int64_t)) {
      // As in torch, an unsigned number that fits into int64 becomes one.
      type_ = std::in_range<int64_t>(value) ? kLong : kUInt64;
    }
  }
  template <std::floating_point T>
  Scalar(T value) noexcept : type_(kDouble), real_(static_cast<double>(value)) {}
  // Templates, because these types are only declared here.
  template <class T>
    requires(std::same_as<T, Half> || std::same_as<T, BFloat16>)
  Scalar(T value) noexcept : Scalar(static_cast<double>(static_cast<float>(value))) {}
  template <class T>
  Scalar(const complex<T>& value) noexcept : Scalar(of_complex(value.real(), value.imag())) {}
  static Scalar of_complex(double real, double imaginary) noexcept {
    Scalar result(real);
    result.type_ = kComplexDouble;
    result.imaginary_ = imaginary;
    return result;
  }

  ScalarType type() const noexcept {
    return type_;
  }
  bool isFloatingPoint() const noexcept {
    return type_ == kDouble;
  }
  bool isComplex() const noexcept {
    return type_ == kComplexDouble;
  }
  bool isBoolean() const noexcept {
    return type_ == kBool;
  }
  bool isIntegral(bool include_bool) const noexcept {
    return type_ == kLong || type_ == kUInt64 || (include_bool && isBoolean());
  }

  // Converts to a number of type T. Raises RuntimeError if it does not fit, as in torch: so 255.7 does not fit into
  // uint8, 1e300 not into float, and infinity does. A negative integer down to -max wraps into an unsigned type. Only
  // for 2**63 and 2**64 as double is this stricter: torch's conversion of those to the integer types is undefined.
  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, bool>) {
      return isIntegral(true) ? integer_ != 0 : real_ != 0 || imaginary_ != 0;
    } else if constexpr (!std::is_arithmetic_v<T> && requires(const T& number) { number.imag(); }) {
      return T(number<typename T::value_type>(), converted<typename T::value_type>(imag()));
    } else {
      check(!isComplex() || imaginary_ == 0);
      return number<T>();
    }
  }
  double toDouble() const {
    return to<double>();
  }
  float toFloat() const {
    return to<float>();
  }
  int64_t toLong() const {
    return to<int64_t>();
  }
  uint64_t toUInt64() const {
    return to<uint64_t>();
  }
  int toInt() const {
    return to<int>();
  }
  bool toBool() const {
    return to<bool>();
  }
  // A template for the same reason.
  template <class T = complex<double>>
  T toComplexDouble() const {
    return to<T>();
  }
  // Real and imaginary parts.
  double real() const {
    return isComplex() ? real_ : number<double>();
  }
  double imag() const noexcept {
    return isComplex() ? imaginary_ : 0;
  }

  template <class T>
  bool equal(T value) const noexcept {
    if constexpr (std::is_same_v<T, bool>) {
      return isBoolean() && (integer_ != 0) == value;
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (isBoolean()) {
        return false;
      }
      if (isIntegral(false)) {
        if constexpr (std::is_integral_v<T>) {
          return type_ == kUInt64 ? std::cmp_equal(static_cast<uint64_t>(integer_), value)
                                  : std::cmp_equal(integer_, value);
        }
        return number_unchecked() == static_cast<double>(value);
      }
      return real_ == static_cast<double>(value) && imaginary_ == 0;
    } else {
      return !isBoolean() && (isIntegral(false) ? number_unchecked() : real_) == value.real() &&
             (isComplex() ? imaginary_ : 0) == value.imag();
    }
  }

  Scalar operator-() const {
    if (isBoolean()) {
      interop::stable::raise(interop::stable::Kind::runtime, "the negation of a truth value is not supported");
    }
    Scalar result(*this);
    result.integer_ = static_cast<int64_t>(-static_cast<uint64_t>(integer_));
    if (type_ == kUInt64) {  // as ATen, in which it wraps around
      result.type_ = kLong;
    }
    result.real_ = -real_;
    result.imaginary_ = -imaginary_;
    return result;
  }
  Scalar conj() const {
    Scalar result(*this);
    result.imaginary_ = -imaginary_;
    return result;
  }

 private:
  static void check(bool fits) {
    if (!fits) {
      interop::stable::raise(
          interop::stable::Kind::runtime, "value cannot be converted to the type asked for without overflow");
    }
  }
  double number_unchecked() const noexcept {
    return type_ == kUInt64 ? static_cast<double>(static_cast<uint64_t>(integer_)) : static_cast<double>(integer_);
  }
  // The number as T, without its imaginary part.
  template <class T>
  T number() const {
    if (isBoolean() || !isIntegral(false)) {
      return isBoolean() ? static_cast<T>(integer_) : converted<T>(real_);
    }
    if constexpr (std::is_integral_v<T>) {
      if (type_ == kUInt64) {
        check(std::in_range<T>(static_cast<uint64_t>(integer_)));
      } else if constexpr (std::is_unsigned_v<T>) {
        check(
            integer_ < 0 ? -static_cast<uint64_t>(integer_) <= std::numeric_limits<T>::max()
                         : std::in_range<T>(integer_));
      } else {
        check(std::in_range<T>(integer_));
      }
      return static_cast<T>(integer_);
    } else if constexpr (std::is_arithmetic_v<T>) {  // in one step, because two would round twice
      return type_ == kUInt64 ? static_cast<T>(static_cast<uint64_t>(integer_)) : static_cast<T>(integer_);
    } else {
      return converted<T>(number_unchecked());
    }
  }
  template <class T>
  static T converted(double value) {
    if constexpr (std::is_integral_v<T>) {
      // The power of two beyond the greatest value is exact. torch has this rule since 2.15: before, it took no
      // fraction beyond the greatest value, which the conversion cuts off.
      constexpr double end = static_cast<double>(T{1} << (std::numeric_limits<T>::digits - 1)) * 2;
      check(value >= static_cast<double>(std::numeric_limits<T>::lowest()) && value < end);
    } else {
      static_assert(std::numeric_limits<T>::is_specialized);
      constexpr double infinity = std::numeric_limits<double>::infinity();
      const double largest = static_cast<double>(std::numeric_limits<T>::max());
      check(!(value > largest && value < infinity) && !(value < -largest && value > -infinity));
    }
    return static_cast<T>(value);
  }

  ScalarType type_;
  int64_t integer_ = 0;
  double real_ = 0;
  double imaginary_ = 0;
};

}  // namespace c10

namespace at {
using namespace c10;
}
