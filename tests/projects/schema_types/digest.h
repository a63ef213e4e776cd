// A number that stands for a value of any type that a schema can have: what table.py makes of the same in Python.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "interop/device.h"

inline double digest(const at::Tensor& value) {
  return static_cast<double>(value.dim() + 1);
}
inline double digest(const at::Generator& value) {
  return value.defined() ? static_cast<double>(value.current_seed() + 1) : -1;
}
inline double digest(const std::string& value) {
  return static_cast<double>(value.size() + 1);
}
inline double digest(const interop::Device& value) {
  return 10.0 * value.is_cuda() + value.index() + 3;
}
inline double digest(const at::Scalar& value) {
  return value.toDouble();
}
inline double digest(const c10::SymInt& value) {
  return static_cast<double>(value.guard_int(__FILE__, __LINE__));  // a graph is for this value
}
template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
double digest(const T& value) {
  return static_cast<double>(value);
}

template <class T>
double digest(const std::optional<T>& value);

template <class List>
  requires requires(const List& list) { list[0], list.size(), list.begin(); } && (!std::is_same_v<List, std::string>)
double digest(const List& list) {
  double total = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    total += static_cast<double>(i + 2) * digest(static_cast<typename List::value_type>(list[i]));
  }
  return total;
}

template <class T>
double digest(const std::optional<T>& value) {
  return value ? digest(*value) : -1;
}

// The tensors in an argument, for each of which backward returns a gradient: an undefined one for an absent tensor, and
// for an argument of another type.
template <class T>
constexpr bool of_tensors =
    std::is_same_v<T, std::vector<at::Tensor>> || std::is_same_v<T, std::vector<std::optional<at::Tensor>>>;
template <class T>
std::vector<at::Tensor> tensors_in(const T& value) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    return {value};
  } else if constexpr (std::is_same_v<T, std::optional<at::Tensor>>) {
    return {value.value_or(at::Tensor())};
  } else if constexpr (of_tensors<T>) {
    std::vector<at::Tensor> result;
    for (const auto& one : value) {
      result.push_back(tensors_in(one)[0]);
    }
    return result;
  } else if constexpr (requires {
                         requires of_tensors<typename T::value_type>;
                         value.has_value();
                       }) {
    return value ? tensors_in(*value) : std::vector<at::Tensor>();
  } else {
    return {at::Tensor()};
  }
}

// y and the sum of each tensor in an argument.
template <class T>
at::Tensor plus_tensors(const at::Tensor& y, const T& value) {
  at::Tensor result = y;
  for (const at::Tensor& one : tensors_in(value)) {
    if (one.defined()) {
      result = result.add(one.sum());
    }
  }
  return result;
}

template <class T>
void add_one(const T& value) {
  if constexpr (requires { value.has_value(); }) {
    if (value) {
      add_one(*value);
    }
  } else if constexpr (requires { value.begin(); }) {
    for (const auto& one : value) {
      add_one(one);
    }
  } else {
    value.add_(1);
  }
}
