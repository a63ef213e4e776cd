// torch's scoped modes in a form that Cython can hold in a local variable.
//
// Cython declares a C++ local at the top of the function, default-constructed, and assigns to it where it is assigned.
// (A variable that is never assigned or read it leaves out.) So here a mode begins with the assignment, not with the
// constructor, and ends with the function:
//
//   cdef torch.NoGradGuard _guard = torch.NoGradGuard()
//
// All of them are thread-local, need no GIL, and must end on the thread that began them.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <optional>

namespace interop {

// Holds a guard of c10 that takes a flag. Objects carry the flag; the one that is assigned to begins the mode.
template <class Guard>
class ScopedMode {
 public:
  ScopedMode() noexcept = default;
  explicit ScopedMode(bool enabled) noexcept : requested_(enabled) {}
  ScopedMode(const ScopedMode&) = delete;
  ScopedMode(ScopedMode&&) = delete;

  ScopedMode& operator=(ScopedMode&& request) {
    guard_.reset();
    if (request.requested_) {
      guard_.emplace(*request.requested_);
    }
    return *this;
  }

 private:
  std::optional<bool> requested_;
  std::optional<Guard> guard_;
};

// Records graphs, or does not. Without a flag it changes nothing.
using AutoGradMode = ScopedMode<c10::AutoGradMode>;

// Records no graphs.
class NoGradGuard : public AutoGradMode {
 public:
  NoGradGuard() noexcept : AutoGradMode(false) {}
};

// Inference mode; with the flag false, out of it again.
class InferenceMode : public ScopedMode<c10::InferenceMode> {
 public:
  InferenceMode() noexcept : ScopedMode(true) {}
  explicit InferenceMode(bool enabled) noexcept : ScopedMode(enabled) {}

  static bool is_enabled() noexcept {
    return c10::InferenceMode::is_enabled();
  }
};

namespace detail {

class DispatchBelowAutograd {
 public:
  explicit DispatchBelowAutograd(bool) {}

 private:
  at::AutoDispatchBelowAutograd guard_;
};

}  // namespace detail

// For kernels of Autograd keys: operators that are called go to the kernels below, and leave no graph.
class AutoDispatchBelowAutograd : public ScopedMode<detail::DispatchBelowAutograd> {
 public:
  AutoDispatchBelowAutograd() noexcept : ScopedMode(true) {}
};

}  // namespace interop
