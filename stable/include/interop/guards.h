// Whether graphs are recorded, in a form that Cython can hold in a local variable: a mode begins with the assignment of
// an object that carries it, and ends with the function. It is thread-local and needs no GIL.
#pragma once

#include <optional>

#include "interop/stable/shim.h"

namespace interop {

// Records graphs, or does not. Without a flag it changes nothing.
class AutoGradMode {
 public:
  AutoGradMode() noexcept = default;
  explicit AutoGradMode(bool enabled) noexcept : requested_(enabled) {}
  AutoGradMode(const AutoGradMode&) = delete;
  AutoGradMode(AutoGradMode&&) = delete;
  AutoGradMode& operator=(AutoGradMode&& request) noexcept {
    end();
    if (request.requested_) {
      before_ = stable::shim.aoti_torch_grad_mode_is_enabled();
      stable::shim.aoti_torch_grad_mode_set_enabled(*request.requested_);
    }
    return *this;
  }
  ~AutoGradMode() {
    end();
  }

 private:
  void end() noexcept {
    if (before_) {
      stable::shim.aoti_torch_grad_mode_set_enabled(*before_);
      before_.reset();
    }
  }

  std::optional<bool> requested_;
  std::optional<bool> before_;
};

// Records no graphs.
class NoGradGuard : public AutoGradMode {
 public:
  NoGradGuard() noexcept : AutoGradMode(false) {}
};

}  // namespace interop
