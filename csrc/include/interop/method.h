// Methods of at::Tensor that are functions of ours.
//
// Cython writes `t.NAME(arguments)` for a method, whatever NAME it was given. Given `getIntrusivePtr()->*method::view`,
// it writes `t.getIntrusivePtr()->*method::view(arguments)`, so that C++ calls our view, which knows the arguments, and
// hands it the tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <type_traits>
#include <utility>

namespace interop {

template <class F>
struct Method {
  F call;
};

template <class F>
Method<F> on(F call) {
  return {std::move(call)};
}

using TensorPointer = std::remove_cvref_t<decltype(std::declval<const at::TensorBase&>().getIntrusivePtr())>;

template <class F>
decltype(auto) operator->*(const TensorPointer& pointer, const Method<F>& method) {
  // The pointer is the only member of a tensor, and so is at its address; the tensor need not be copied.
  static_assert(std::is_standard_layout_v<at::Tensor> && sizeof(at::Tensor) == sizeof(TensorPointer));
  return method.call(reinterpret_cast<const at::Tensor&>(pointer));
}

}  // namespace interop
