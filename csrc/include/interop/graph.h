// Tells whether autograd records here. Autograd does not see what a loop computes. So if it records, it would
// silently treat the results as constants.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <string>
#include <utility>

namespace interop {

// Notes for its lifetime whether this thread runs the kernel of an operator below autograd, or a part of a loop that
// began in one. torch's own modes do not show this if the operator has no gradient: torch then passes the call
// through unchanged, and warns in backward.
class BelowAutograd {
 public:
  explicit BelowAutograd(bool below) noexcept : before_(std::exchange(here_, below)) {}
  ~BelowAutograd() {
    here_ = before_;
  }
  BelowAutograd(const BelowAutograd&) = delete;
  BelowAutograd& operator=(const BelowAutograd&) = delete;

  static bool here() noexcept {
    return here_;
  }

 private:
  bool before_;
  static inline thread_local bool here_ = false;
};

// Whether autograd would record an ATen operation on tensors that require grad.
inline bool records_graph() {
  return c10::GradMode::is_enabled() && !BelowAutograd::here() &&
         !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutogradFunctionality);
}

// Raises if autograd would have to track this tensor.
inline void check_no_graph(const at::TensorBase& tensor, const char* operation, const std::string& input) {
  TORCH_CHECK(
      !tensor.requires_grad() || !records_graph(), operation, ": ", input,
      " requires grad, and what is computed here belongs to no graph, so its gradient would be lost; make it an "
      "operator with a gradient (define, impl and register_autograd of torch.library), or call it under NoGradGuard or "
      "on .detach()");
  TORCH_CHECK_NOT_IMPLEMENTED(
      !tensor.unsafeGetTensorImpl()->_fw_grad(0, tensor).defined(), operation, ": ", input,
      " has a forward gradient, which would be lost; call it on the primal of "
      "torch.autograd.forward_ad.unpack_dual()");
}

}  // namespace interop
