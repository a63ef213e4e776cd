// The dtype to which the inputs of an operation promote, by the rules of torch.result_type().
//
// torch's own function is declared in ATen/native/TypeProperties.h, which includes all of IValue: 3 s of g++.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarType.h>

#include <cstddef>

namespace interop::detail {

class Promotion {
 public:
  void add(const at::Tensor& input) {
    c10::ScalarType dtype = input.scalar_type();
    const bool is_number = input.unsafeGetTensorImpl()->is_wrapped_number();
    if (is_number && c10::isComplexType(dtype)) {
      dtype = c10::typeMetaToScalarType(c10::get_default_complex_dtype());
    } else if (is_number && c10::isFloatingType(dtype)) {
      dtype = c10::typeMetaToScalarType(c10::get_default_dtype());
    }
    c10::ScalarType& group = groups_[input.dim() > 0 ? 0 : is_number ? 2 : 1];
    group = promote(group, dtype);
  }

  c10::ScalarType dtype() const {
    return prefer(groups_[0], prefer(groups_[1], groups_[2]));
  }

 private:
  static constexpr auto none = c10::ScalarType::Undefined;

  static c10::ScalarType promote(c10::ScalarType a, c10::ScalarType b) {
    return a == none ? b : b == none ? a : c10::promoteTypes(a, b);
  }

  // The dtype of the first group; the second counts only if its category is higher. A floating-point type keeps its
  // size when it becomes complex.
  static c10::ScalarType prefer(c10::ScalarType first, c10::ScalarType second) {
    if (category(second) <= category(first)) {
      return first;
    }
    if (c10::isComplexType(second)) {
      return c10::isFloatingType(first) ? c10::toComplexType(first) : second;
    }
    return promote(first, second);
  }

  static int category(c10::ScalarType dtype) {
    return dtype == none                    ? 0
           : dtype == c10::ScalarType::Bool ? 1
           : c10::isComplexType(dtype)      ? 4
           : c10::isFloatingType(dtype)     ? 3
                                            : 2;
  }

  // Of tensors with dimensions, of those without, and of numbers.
  c10::ScalarType groups_[3] = {none, none, none};
};

}  // namespace interop::detail
