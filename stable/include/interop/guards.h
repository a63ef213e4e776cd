// Whether graphs are recorded, as a class that Cython can hold in a local variable. The mode takes effect when an
// object that carries it is assigned, and ends with the function. It is thread-local and does not need the GIL.
#pragma once

#include <optional>

#include "interop/stable/shim.h"

namespace interop {

// Enables or disables recording. Without a flag it changes nothing.
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

// Disables recording.
class NoGradGuard : public AutoGradMode {
 public:
  NoGradGuard() noexcept : AutoGradMode(false) {}
};

}  // namespace interop
