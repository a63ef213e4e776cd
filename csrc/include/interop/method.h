// Methods of at::Tensor that call our functions.
//
// For a method, Cython writes `t.NAME(arguments)` with any NAME that the declaration gives. With the name
// `getIntrusivePtr()->*method::view`, it writes `t.getIntrusivePtr()->*method::view(arguments)`. So C++ calls our
// view with the arguments, and operator->* passes the tensor to the result.
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
  // The pointer is the tensor's only member, and so has its address; the tensor need not be copied.
  static_assert(std::is_standard_layout_v<at::Tensor> && sizeof(at::Tensor) == sizeof(TensorPointer));
  return method.call(reinterpret_cast<const at::Tensor&>(pointer));
}

}  // namespace interop
