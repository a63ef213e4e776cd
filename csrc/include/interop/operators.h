// The operators of tensors, with the meaning that they have in Python.
//
// ATen defines them in ATen/TensorOperators.h. That header costs 1.5 s of g++, for a function that only two of the
// operators call. Those two are wrong: they fill a tensor like the other operand with the number on the left, so for
// an integer tensor 1.5 - t is 1 - t, and 1 / t fails. The operators here are in the global namespace, where Cython's
// code is. If ATen's are visible as well, these win only with a number, which they take without converting it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/bitwise_and_ops.h>
#include <ATen/ops/bitwise_or_ops.h>
#include <ATen/ops/bitwise_xor_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/ne_ops.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/rsub_ops.h>
#include <ATen/ops/sub_ops.h>

#include <concepts>
#include <type_traits>

#include "interop/unwrap_reference.h"

namespace interop {

// A number that may be symbolic.
template <class T>
concept Symbolic = std::same_as<T, c10::SymInt> || std::same_as<T, c10::SymFloat>;

// A C enum is a number, too, and so is a Scalar.
template <class T>
concept Number = std::is_arithmetic_v<T> || (std::is_enum_v<T> && std::is_convertible_v<T, int64_t>) ||
                 Symbolic<unwrap_reference_t<T>> || std::same_as<unwrap_reference_t<T>, at::Scalar>;

// A tensor, or Cython's reference to one.
template <class T>
concept Operand = std::same_as<unwrap_reference_t<T>, at::Tensor>;

template <Number N>
at::Scalar to_scalar(const N& value) {
  if constexpr (std::is_enum_v<N>) {
    return at::Scalar(static_cast<int64_t>(value));
  } else {
    return at::Scalar(unwrap_reference(value));
  }
}

}  // namespace interop

// Templates, so that ATen's own, which are not templates, take precedence if both match equally well.
#define INTEROP_OPERATOR(OP, NAME, ...)                                                                           \
  template <interop::Operand T, interop::Operand U>                                                               \
  at::Tensor operator OP(const T& a, const U& b) {                                                                \
    return at::_ops::NAME##_Tensor::call(interop::unwrap_reference(a), interop::unwrap_reference(b) __VA_ARGS__); \
  }                                                                                                               \
  template <interop::Operand T, interop::Number N>                                                                \
  at::Tensor operator OP(const T& a, const N& b) {                                                                \
    return at::_ops::NAME##_Scalar::call(interop::unwrap_reference(a), interop::to_scalar(b) __VA_ARGS__);        \
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
INTEROP_OPERATOR(&, bitwise_and)
INTEROP_OPERATOR(|, bitwise_or)
INTEROP_OPERATOR(^, bitwise_xor)
#undef INTEROP_OPERATOR

template <interop::Number N, interop::Operand T>
at::Tensor operator+(const N& value, const T& tensor) {
  return at::_ops::add_Scalar::call(interop::unwrap_reference(tensor), interop::to_scalar(value), 1);
}

template <interop::Number N, interop::Operand T>
at::Tensor operator-(const N& value, const T& tensor) {
  return at::_ops::rsub_Scalar::call(interop::unwrap_reference(tensor), interop::to_scalar(value), 1);
}

template <interop::Number N, interop::Operand T>
at::Tensor operator*(const N& value, const T& tensor) {
  return at::_ops::mul_Scalar::call(interop::unwrap_reference(tensor), interop::to_scalar(value));
}

// The same two steps as torch.Tensor.__rtruediv__, so that the results are the same to the last bit.
template <interop::Number N, interop::Operand T>
at::Tensor operator/(const N& value, const T& tensor) {
  return at::_ops::mul_Scalar::call(
      at::_ops::reciprocal::call(interop::unwrap_reference(tensor)), interop::to_scalar(value));
}

// For at::Tensor itself, these are members.
template <interop::Operand T>
  requires interop::CythonReference<T>
at::Tensor operator-(const T& tensor) {
  return -interop::unwrap_reference(tensor);
}

template <interop::Operand T>
  requires interop::CythonReference<T>
at::Tensor operator~(const T& tensor) {
  return ~interop::unwrap_reference(tensor);
}

// c10 has += and *= alone.
template <std::same_as<c10::SymInt> T>
T& operator-=(T& a, const c10::SymInt& b) {
  return a = a - b;
}
