// Sums, products and comparisons with numbers.
//
// Their schemas take a Scalar, which torch's C interface cannot pass. If a zero-dimensional tensor means the same as
// the number, the call passes that tensor; otherwise it goes through Python. Only the dtype of the result could
// differ. Beside a tensor with dimensions, neither a number nor a zero-dimensional tensor selects a wider dtype of
// the same kind. A kind that is not above the other operand's kind has no effect.
#pragma once

#include "c10/core/Scalar.h"
#include "interop/stable/ivalue.h"
#include "interop/stable/python_call.h"

namespace interop::stable {

namespace detail {

// Booleans, integers, real and complex numbers, in torch's order of promotion.
inline int kind_of(at::ScalarType type) {
  return type == at::kBool ? 0 : c10::isIntegralType(type, false) ? 1 : c10::isComplexType(type) ? 3 : 2;
}

inline bool can_stand_for(const at::Scalar& number, const Tensor& other) {
  // The C interface takes a complex number as a C++ class.
  return other.dim() > 0 && !number.isComplex() && kind_of(number.type()) <= kind_of(other.scalar_type()) &&
         number.type() != at::kUInt64 && !other.is_quantized();
}

inline Tensor of_no_dimensions(const at::Scalar& number) {
  AtenTensorHandle handle = nullptr;
  if (number.isBoolean()) {
    INTEROP_CALL(aoti_torch_scalar_to_tensor_bool, number.toBool(), &handle);
  } else if (number.isIntegral(false)) {
    INTEROP_CALL(aoti_torch_scalar_to_tensor_int64, number.toLong(), &handle);
  } else {
    INTEROP_CALL(aoti_torch_scalar_to_tensor_float64, number.toDouble(), &handle);
  }
  return Tensor(handle);
}

// self - factor * other, for cases in which that is exact: the C interface has no add, and takes the factor as a
// double.
inline Tensor subtract(const Tensor& self, const Tensor& other, double factor) {
  AtenTensorHandle handle = nullptr;
  INTEROP_CALL(aoti_torch_aten_subtract_Tensor, self.get(), other.get(), factor, &handle);
  return Tensor(handle);
}

// Whether the operands' sum accepts a double as factor, and the double affects only the value of the result. Booleans
// cannot be subtracted.
inline bool takes_real_factor(const Tensor& self, const Tensor& other, const at::Scalar& factor) {
  const int kinds[] = {kind_of(self.scalar_type()), kind_of(other.scalar_type())};
  const bool plain =
      self.layout() == at::kStrided && other.layout() == at::kStrided && !self.is_quantized() && !other.is_quantized();
  return plain && !factor.isComplex() && !factor.isBoolean() && !factor.equal(0.0) && factor.type() != at::kUInt64 &&
         (kinds[0] >= 2 || kinds[1] >= 2) && kinds[0] > 0 && kinds[1] > 0;
}

}  // namespace detail

#define INTEROP_SUM(name, sign)                                                                             \
  inline Tensor name(const Tensor& self, const Tensor& other, const at::Scalar& alpha) {                    \
    if (detail::takes_real_factor(self, other, alpha)) {                                                    \
      return detail::subtract(self, other, sign alpha.toDouble());                                          \
    }                                                                                                       \
    static constinit PythonOperator callee(                                                                 \
        "aten::" #name, "Tensor", #name ".Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"); \
    return callee.call<Tensor>({"alpha"}, self, other, alpha);                                              \
  }                                                                                                         \
  inline Tensor name(const Tensor& self, const at::Scalar& other, const at::Scalar& alpha) {                \
    if (detail::can_stand_for(other, self)) {                                                               \
      const Tensor number = detail::of_no_dimensions(other);                                                \
      if (detail::takes_real_factor(self, number, alpha)) {                                                 \
        return detail::subtract(self, number, sign alpha.toDouble());                                       \
      }                                                                                                     \
    }                                                                                                       \
    static constinit PythonOperator callee(                                                                 \
        "aten::" #name, "Scalar", #name ".Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor");    \
    return callee.call<Tensor>({}, self, other, alpha);                                                     \
  }
INTEROP_SUM(add, -)
INTEROP_SUM(sub, +)
#undef INTEROP_SUM

#define INTEROP_WITH_NUMBER(name)                                                                                     \
  inline Tensor name(const Tensor& self, const Tensor& other) {                                                       \
    static constinit Operator callee("aten::" #name, "Tensor", #name ".Tensor(Tensor self, Tensor other) -> Tensor"); \
    return callee.call<Tensor>(self, other);                                                                          \
  }                                                                                                                   \
  inline Tensor name(const Tensor& self, const at::Scalar& other) {                                                   \
    if (detail::can_stand_for(other, self)) {                                                                         \
      return name(self, detail::of_no_dimensions(other));                                                             \
    }                                                                                                                 \
    static constinit PythonOperator callee(                                                                           \
        "aten::" #name, "Scalar", #name ".Scalar(Tensor self, Scalar other) -> Tensor");                              \
    return callee.call<Tensor>({}, self, other);                                                                      \
  }
INTEROP_WITH_NUMBER(mul)
INTEROP_WITH_NUMBER(div)
INTEROP_WITH_NUMBER(eq)
INTEROP_WITH_NUMBER(ne)
INTEROP_WITH_NUMBER(lt)
INTEROP_WITH_NUMBER(le)
INTEROP_WITH_NUMBER(gt)
INTEROP_WITH_NUMBER(ge)
#undef INTEROP_WITH_NUMBER

}  // namespace interop::stable
