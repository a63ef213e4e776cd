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
// through unchanged, and warns in backward. Modules that g++ compiles share the note. With clang, each module has its
// own, so a composite operator of another module, called in a kernel, raises for its loops on tensors that require
// grad.
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

// Whether a gradient would be lost here: autograd would record an ATen operation, or a setup_context would save a
// constant, which has no second derivative.
inline bool records_graph() {
  if (!c10::GradMode::is_enabled() || BelowAutograd::here()) {
    return false;
  }
  const c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  // AutoDispatchBelowAutograd, under which setup_context runs, excludes the key without a backend, and is not meant.
  // A rule for vmap has the key of each backend excluded, and torch includes it again for the operators that it calls.
  return !keys.excluded_.has(c10::DispatchKey::AutogradCPU) ||
         keys.included_.has(c10::DispatchKey::FuncTorchDynamicLayerBackMode);
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
