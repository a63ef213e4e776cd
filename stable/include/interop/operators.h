// The operators of tensors, with their Python meaning.
#pragma once

#include <concepts>
#include <type_traits>

#include "interop/stable/arithmetic.h"
#include "interop/unwrap_reference.h"

namespace interop {

// A C enum counts as a number, and so does a Scalar.
template <class T>
concept Number = std::is_arithmetic_v<T> || (std::is_enum_v<T> && std::is_convertible_v<T, int64_t>) ||
                 std::same_as<unwrap_reference_t<T>, at::Scalar>;

// A tensor, the field behind a Python tensor's object header, or Cython's reference to a tensor.
template <class T>
concept Operand = std::same_as<unwrap_reference_t<T>, at::Tensor> || std::same_as<T, stable::TensorField>;

template <Number N>
at::Scalar to_scalar(N value) {
  if constexpr (std::is_enum_v<N>) {
    return at::Scalar(static_cast<int64_t>(value));
  } else {
    return at::Scalar(unwrap_reference(value));
  }
}

namespace detail {

template <Operand T>
at::Tensor operand(const T& value) {
  if constexpr (std::same_as<T, stable::TensorField>) {
    return value;
  } else {
    return unwrap_reference(value).borrowed();
  }
}

}  // namespace detail
}  // namespace interop

#define INTEROP_OPERATOR(OP, NAME, ...)                                                                 \
  template <interop::Operand T, interop::Operand U>                                                     \
  at::Tensor operator OP(const T& a, const U& b) {                                                      \
    return interop::stable::NAME(interop::detail::operand(a), interop::detail::operand(b) __VA_ARGS__); \
  }                                                                                                     \
  template <interop::Operand T, interop::Number N>                                                      \
  at::Tensor operator OP(const T& a, N b) {                                                             \
    return interop::stable::NAME(interop::detail::operand(a), interop::to_scalar(b) __VA_ARGS__);       \
  }

INTEROP_OPERATOR(+, add, , 1)
INTEROP_OPERATOR(-, sub, , 1)
INTEROP_OPERATOR(*, mul)
INTEROP_OPERATOR(/, div)
INTEROP_OPERATOR(==, eq)
INTEROP_OPERATOR(!=, ne)
INTEROP_OPERATOR(<, lt)
INTEROP_OPERATOR(<=, le)
INTEROP_OPERATOR(>, gt)
INTEROP_OPERATOR(>=, ge)
#undef INTEROP_OPERATOR

#define INTEROP_OPERATOR(OP, NAME)                                                            \
  template <interop::Operand T, interop::Operand U>                                           \
  at::Tensor operator OP(const T& a, const U& b) {                                            \
    static constinit interop::stable::Operator callee(                                        \
        "aten::" #NAME, "Tensor", #NAME ".Tensor(Tensor self, Tensor other) -> Tensor");      \
    return callee.call<at::Tensor>(interop::detail::operand(a), interop::detail::operand(b)); \
  }
INTEROP_OPERATOR(&, bitwise_and)
INTEROP_OPERATOR(|, bitwise_or)
INTEROP_OPERATOR(^, bitwise_xor)
#undef INTEROP_OPERATOR

#define INTEROP_OPERATOR(OP, NAME)                                                                          \
  template <interop::Operand T>                                                                             \
  at::Tensor operator OP(const T& tensor) {                                                                 \
    static constinit interop::stable::Operator callee("aten::" #NAME, "", #NAME "(Tensor self) -> Tensor"); \
    return callee.call<at::Tensor>(interop::detail::operand(tensor));                                       \
  }
INTEROP_OPERATOR(-, neg)
INTEROP_OPERATOR(~, bitwise_not)
#undef INTEROP_OPERATOR

template <interop::Number N, interop::Operand T>
at::Tensor operator+(N value, const T& tensor) {
  return tensor + value;
}

// Goes through Python, because the number comes first.
template <interop::Number N, interop::Operand T>
at::Tensor operator-(N value, const T& tensor) {
  static constinit interop::stable::PythonOperator callee(
      "aten::rsub", "Scalar", "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor");
  return callee.call<at::Tensor>({}, interop::detail::operand(tensor), interop::to_scalar(value), at::Scalar(1));
}

template <interop::Number N, interop::Operand T>
at::Tensor operator*(N value, const T& tensor) {
  return tensor * value;
}

// The same two steps as torch.Tensor.__rtruediv__, so that the results agree to the last bit.
template <interop::Number N, interop::Operand T>
at::Tensor operator/(N value, const T& tensor) {
  static constinit interop::stable::Operator callee("aten::reciprocal", "", "reciprocal(Tensor self) -> Tensor");
  return callee.call<at::Tensor>(interop::detail::operand(tensor)) * value;
}
