// A registered operator, called through the dispatcher with C++ values.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <ATen/core/operator_name.h>

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "interop/convert.h"
#include "interop/device.h"
#include "interop/gil.h"
#include "interop/runtime.h"
#include "interop/unwrap_reference.h"

namespace interop {

namespace detail {

// Converts a Python object: None, a tensor, a number or a string.
inline c10::IValue object_to_ivalue(PyObject* object) {
  const Gil gil;
  if (object == Py_None) {
    return c10::IValue();
  }
  if (is_tensor(object)) {
    return c10::IValue(reinterpret_cast<THPVariable*>(object)->cdata);
  }
  if (PyBool_Check(object)) {
    return c10::IValue(object == Py_True);
  }
  constexpr Argument argument{"Operator.call", "argument"};
  if (python::is_text(object)) {
    return c10::IValue(std::string(python::to_string(object, argument)));
  }
  TORCH_CHECK_TYPE(
      python::is_number(object), "Operator.call takes None, a torch.Tensor, a number or a str, got ",
      Py_TYPE(object)->tp_name, "; pass anything else as a C++ object");
  return c10::IValue(python::to_scalar(object, argument));
}

template <class A>
c10::IValue to_ivalue(const A& argument) {
  if constexpr (Object<A>) {
    return object_to_ivalue(reinterpret_cast<PyObject*>(argument));
  } else if constexpr (std::is_floating_point_v<A>) {
    return c10::IValue(static_cast<double>(argument));
  } else if constexpr (std::is_same_v<A, bool>) {
    return c10::IValue(argument);
  } else if constexpr (std::is_integral_v<A>) {
    return c10::IValue(static_cast<int64_t>(argument));
  } else if constexpr (std::is_convertible_v<A, const char*>) {
    return c10::IValue(std::string(argument));
  } else if constexpr (has_devices<A>) {
    return c10::IValue(with_devices<WithTorchDevice<A>>(argument));
  } else if constexpr (std::is_base_of_v<at::Generator, A>) {
    return argument.defined() ? c10::IValue(static_cast<const at::Generator&>(argument)) : c10::IValue();
  } else {
    static_assert(!std::is_pointer_v<A>, "Operator.call takes no pointers");
    return c10::IValue(argument);
  }
}

template <class R>
R from_ivalue(c10::IValue& value, const std::string& name) {
  if constexpr (requires(R r) { r.has_value(), *r; }) {
    return value.isNone() ? R() : R(from_ivalue<typename R::value_type>(value, name));
  } else if constexpr (has_devices<R>) {
    return with_devices<R>(from_ivalue<WithTorchDevice<R>>(value, name));
  } else {
    if constexpr (std::is_same_v<R, std::vector<c10::SymInt>>) {  // a list of ints if no element is symbolic
      if (value.isList()) {
        R sizes;
        for (const c10::IValue& one : value.toListRef()) {
          sizes.push_back(one.toSymInt());
        }
        return sizes;
      }
    }
    // torch holds an enum, and a size that is not symbolic, as an int. A Scalar may be a bool.
    const bool is_number = std::is_same_v<R, at::Scalar>                         ? value.isScalar()
                           : std::is_same_v<R, c10::SymInt> || std::is_enum_v<R> ? value.isInt()
                                                                                 : false;
    // A tensor's type includes its sizes and strides: it is expensive, and an undefined tensor has none.
    const bool fits = value.isTensor() ? std::is_same_v<R, at::Tensor>
                                       : is_number || value.type()->isSubtypeOf(*c10::getTypePtr<R>());
    TORCH_CHECK_TYPE(
        fits, name, " returns ", value.tagKind(), ", but Operator[...] says ", c10::getTypePtr<R>()->annotation_str());
    return std::move(value).to<R>();
  }
}

template <class R>
R from_stack(std::vector<c10::IValue>& stack, const std::string& name) {
  using Parts = std::conditional_t<std::is_void_v<R>, std::tuple<>, std::tuple<R>>;
  constexpr size_t wanted = std::tuple_size_v<Parts>;
  TORCH_CHECK_TYPE(stack.size() == wanted, name, " returns ", stack.size(), " values, but Operator[...] says ", wanted);
  if constexpr (wanted == 1) {
    return from_ivalue<R>(stack[0], name);
  }
}

template <class R>
  requires requires { std::tuple_size<R>::value; }
R from_stack(std::vector<c10::IValue>& stack, const std::string& name) {
  constexpr size_t wanted = std::tuple_size_v<R>;
  TORCH_CHECK_TYPE(stack.size() == wanted, name, " returns ", stack.size(), " values, but Operator[...] says ", wanted);
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return R(from_ivalue<std::tuple_element_t<I, R>>(stack[I], name)...);
  }(std::make_index_sequence<wanted>());
}

}  // namespace detail

// R is the operator's result: a tensor, a number, a std::vector, or a std::tuple of them.
template <class R>
class Operator {
 public:
  Operator() = default;
  // Each call looks up the operator, because the module that defines it may be loaded later, or again.
  explicit Operator(std::string name) : name_(std::move(name)) {}

  template <class... A>
  R call(const A&... arguments) const {
    std::vector<c10::IValue> stack;
    stack.reserve(sizeof...(A));
    (stack.push_back(detail::to_ivalue(unwrap_reference(arguments))), ...);
    runtime().call(name_, stack);
    return detail::from_stack<R>(stack, name_);
  }

 private:
  std::string name_;
};

}  // namespace interop
