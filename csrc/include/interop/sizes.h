// Sizes as numbers, for callers in Cython.
//
// While torch.compile or torch.export traces with dynamic shapes, a size may be symbolic. ATen's own size(dim)
// silently turns it into its current number, and the compiled code is recompiled for each size. ATen's sizes() and
// numel() raise, but name no remedy. The functions here raise and say what to write.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <string>

#include "interop/callback.h"
#include "interop/method.h"

namespace interop::sizes {

// `what` is the call, such as size(0), and `symbol` the result of sym_size(0).
template <class Symbol>
[[noreturn]] void refuse(const std::string& what, const Symbol& symbol) {
  Callback::locate();
  TORCH_CHECK(
      false, what, " is symbolic here, ", symbol,
      ": torch.compile or torch.export is tracing for any size, and a number would recompile for each size. Write sym_",
      what, ", and at.empty_symint for at.empty; guard_int(b\"file\", line) of an at.SymInt recompiles for each size");
}

inline bool may_be_symbolic(const at::TensorBase& tensor) {
  return tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

// The number, or the error if the value is symbolic.
inline int64_t number(const c10::SymInt& value, const std::string& what) {
  if (const auto known = value.maybe_as_int()) {
    return *known;
  }
  refuse(what, value);
}
inline int64_t number(const c10::SymInt& value, const char* what, int64_t dim) {
  if (const auto known = value.maybe_as_int()) {
    return *known;
  }
  refuse(c10::str(what, "(", dim, ")"), value);
}

inline int64_t size_of(const at::TensorBase& tensor, int64_t dim) {
  return may_be_symbolic(tensor) ? number(tensor.sym_size(dim), "size", dim) : tensor.size(dim);
}
inline int64_t stride_of(const at::TensorBase& tensor, int64_t dim) {
  return may_be_symbolic(tensor) ? number(tensor.sym_stride(dim), "stride", dim) : tensor.stride(dim);
}
inline int64_t numel_of(const at::TensorBase& tensor) {
  return may_be_symbolic(tensor) ? number(tensor.sym_numel(), "numel()") : tensor.numel();
}

// The methods that Cython calls: see interop/method.h.

inline auto size(int64_t dim) {
  return on([dim](const at::Tensor& tensor) { return size_of(tensor, dim); });
}
inline auto stride(int64_t dim) {
  return on([dim](const at::Tensor& tensor) { return stride_of(tensor, dim); });
}
inline auto numel() {
  return on([](const at::Tensor& tensor) { return numel_of(tensor); });
}
inline auto storage_offset() {
  return on([](const at::Tensor& tensor) {
    return may_be_symbolic(tensor) ? number(tensor.sym_storage_offset(), "storage_offset()") : tensor.storage_offset();
  });
}
inline auto nbytes() {
  return on([](const at::Tensor& tensor) {
    return may_be_symbolic(tensor) ? static_cast<size_t>(number(tensor.sym_nbytes(), "nbytes()")) : tensor.nbytes();
  });
}
inline auto sizes() {
  return on([](const at::Tensor& tensor) -> at::IntArrayRef {
    if (!may_be_symbolic(tensor)) {
      return tensor.sizes();
    }
    if (const auto known = c10::asIntArrayRefSlowOpt(tensor.sym_sizes())) {
      return *known;
    }
    refuse("sizes()", tensor.sym_sizes());
  });
}
inline auto strides() {
  return on([](const at::Tensor& tensor) -> at::IntArrayRef {
    if (!may_be_symbolic(tensor)) {
      return tensor.strides();
    }
    if (const auto known = c10::asIntArrayRefSlowOpt(tensor.sym_strides())) {
      return *known;
    }
    refuse("strides()", tensor.sym_strides());
  });
}

}  // namespace interop::sizes
