// torch's scoped modes in a form that Cython can hold in a local variable.
//
// Cython default-constructs a C++ local at the top of the function, and assigns to it where the source does. (It
// omits a variable that is never assigned or read.) So a mode begins with the assignment, not with the constructor,
// and ends with the function:
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

// Holds a c10 guard that takes a flag. A constructed object only carries the flag; assigning it to another one begins
// the mode there.
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

// Switches the recording of graphs on or off. Without a flag it changes nothing.
using AutoGradMode = ScopedMode<c10::AutoGradMode>;

// Records no graphs.
class NoGradGuard : public AutoGradMode {
 public:
  NoGradGuard() noexcept : AutoGradMode(false) {}
};

// Enters inference mode, or leaves it if the flag is false.
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

// For kernels of Autograd keys: the operators that they call run the kernels below autograd and record no graph.
class AutoDispatchBelowAutograd : public ScopedMode<detail::DispatchBelowAutograd> {
 public:
  AutoDispatchBelowAutograd() noexcept : ScopedMode(true) {}
};

}  // namespace interop
