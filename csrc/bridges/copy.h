// Copies of tensors, made without the GIL: they take as long as their memory is large.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/clone_ops.h>
#include <ATen/ops/lift_fresh_ops.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <utility>

#include "interop/gil.h"

namespace interop::bridges {

inline at::Tensor contiguous_copy(const at::Tensor& tensor) {
  const NoGil no_gil;
  return at::_ops::clone::call(tensor, c10::MemoryFormat::Contiguous);
}

// On another device.
inline at::Tensor copy_on(const at::Tensor& tensor, const c10::Device& device) {
  const NoGil no_gil;
  return tensor.to(tensor.options().device(device));
}

// A tensor that was made here, as those see it who follow all tensors, such as FakeTensorMode. torch does the same with
// what comes from NumPy.
inline at::Tensor lifted(at::Tensor tensor) {
  // What c10::impl::dispatch_mode_enabled() finds out with eight times the instructions.
  const bool followed = c10::impl::tls_local_dispatch_key_set().included_.has(c10::DispatchKey::Python);
  return followed ? at::_ops::lift_fresh::call(tensor) : std::move(tensor);
}

}  // namespace interop::bridges
