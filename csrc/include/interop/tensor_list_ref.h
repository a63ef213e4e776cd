// Lists of tensors for the few functions that take an ITensorListRef. Separate from convert.h, because that type's
// header takes g++ 1 s.
#pragma once

#include <ATen/core/IListRef.h>

#include "interop/convert.h"

namespace interop {

namespace detail {

template <class List>
struct TensorListRef {
  List list;
  operator at::ITensorListRef() const {
    return at::ITensorListRef(at::TensorList(list));
  }
};

}  // namespace detail

template <>
struct Convert<at::ITensorListRef> : Convert<at::TensorList> {
  template <class A>
  static auto from(const A& a, Argument argument) {
    return detail::TensorListRef<decltype(Convert<at::TensorList>::from(a, argument))>{
        Convert<at::TensorList>::from(a, argument)};
  }
  static auto from_object(PyObject* obj, Argument argument) {
    return detail::TensorListRef<decltype(Convert<at::TensorList>::from_object(obj, argument))>{
        Convert<at::TensorList>::from_object(obj, argument)};
  }
};

}  // namespace interop
