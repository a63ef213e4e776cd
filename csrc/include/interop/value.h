// An argument of any type, to be converted to the type of a parameter.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/util/Exception.h>

#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "interop/convert.h"
#include "interop/cython_type_name.h"

namespace interop::autograd {

// Borrows the argument.
class Value {
 public:
  Value() = default;
  template <class A>
  explicit Value(const A& argument) : address_(&argument), type_(&typeid(A)) {
    is_object_ = Object<A>;
    if constexpr (std::is_floating_point_v<A>) {
      number_ = at::Scalar(static_cast<double>(argument));
    } else if constexpr (std::is_same_v<A, bool>) {
      number_ = at::Scalar(argument);
    } else if constexpr (std::is_integral_v<A>) {
      number_ = at::Scalar(static_cast<int64_t>(argument));
    }
  }

  // Converts to the parameter type P. Error messages name parameter `index` of `function`.
  template <class P>
  decltype(auto) as(const char* function, size_t index) const {
    using D = std::remove_cvref_t<P>;
    if constexpr (std::is_arithmetic_v<D>) {
      return number<D>(function, index);
    } else if constexpr (std::is_same_v<D, at::Scalar>) {
      return *type_ == typeid(D) ? exact<D>() : number_ ? *number_ : refuse<at::Scalar>(function, index, "a number");
    } else if constexpr (std::is_same_v<D, std::optional<at::Tensor>>) {
      return *type_ == typeid(D)                ? exact<D>()
             : *type_ == typeid(at::Tensor)     ? D(exact<at::Tensor>())
             : *type_ == typeid(std::nullopt_t) ? D()
                                                : refuse<D>(function, index, "an optional tensor");
    } else {
      // The caller's vectors and structs, and tensors: no other type converts to them.
      static_assert(
          !std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>> ||
              std::is_same_v<D, at::Tensor>,
          "a parameter of forward must be a value, a constant reference or a tensor");
      if (*type_ != typeid(D)) {
        refuse<int>(function, index, spelled(typeid(D)).c_str());
      }
      return const_cast<std::conditional_t<std::is_lvalue_reference_v<P>, P, const D&>>(exact<D>());
    }
  }

 private:
  template <class T>
  const T& exact() const noexcept {
    return *static_cast<const T*>(address_);
  }

  template <class T>
  T number(const char* function, size_t index) const {
    constexpr const char* wanted = std::is_floating_point_v<T> ? "a float"
                                   : std::is_same_v<T, bool>   ? "a bool"
                                                               : "an int";
    const bool fits =
        number_ && (std::is_floating_point_v<T> ? !number_->isBoolean() : number_->isIntegral(/*includeBool=*/true));
    if (!fits) {
      refuse<int>(function, index, wanted);
    }
    return number_->to<T>();  // raises if it does not fit
  }

  template <class R>
  [[noreturn]] R refuse(const char* function, size_t index, const char* wanted) const {
    TORCH_CHECK_TYPE(
        false, function, ": argument ", index + 1, " of forward must be ", wanted, ", got ",
        is_object_ ? "a Python object; give it a C type, or pass x.cdata of a tensor" : spelled(*type_));
  }

  const void* address_ = nullptr;
  const std::type_info* type_ = &typeid(void);
  std::optional<at::Scalar> number_;
  bool is_object_ = false;
};

}  // namespace interop::autograd
