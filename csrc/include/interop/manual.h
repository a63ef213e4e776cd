// The functions that ATen/Functions.h defines by hand. Including that header would cost seconds.
#pragma once

#include <ATen/core/Tensor.h>

#include "interop/sizes.h"

namespace interop::manual {

inline int64_t numel(const at::Tensor& tensor) {
  return sizes::numel_of(tensor);
}
inline int64_t size(const at::Tensor& tensor, int64_t dim) {
  return sizes::size_of(tensor, dim);
}
inline int64_t stride(const at::Tensor& tensor, int64_t dim) {
  return sizes::stride_of(tensor, dim);
}
inline bool is_complex(const at::Tensor& tensor) {
  return tensor.is_complex();
}
inline bool is_floating_point(const at::Tensor& tensor) {
  return tensor.is_floating_point();
}
inline bool is_signed(const at::Tensor& tensor) {
  return tensor.is_signed();
}
inline bool is_inference(const at::Tensor& tensor) {
  return tensor.is_inference();
}
inline bool is_conj(const at::Tensor& tensor) {
  return tensor.is_conj();
}
inline bool is_neg(const at::Tensor& tensor) {
  return tensor.is_neg();
}
inline bool _is_zerotensor(const at::Tensor& tensor) {
  return tensor._is_zerotensor();
}
inline at::Tensor conj(const at::Tensor& tensor) {
  return tensor.conj();
}

}  // namespace interop::manual
