// torch's scoped guards in a form that Cython can hold as a local variable.
//
// Cython declares a C++ local at the top of the function, default-constructed, and assigns to it later. So a guard must
// have a constructor without arguments, and `guard = Guard(flag)` must switch the mode from that statement on. c10's
// guards can do neither. All of them are thread-local, need no GIL, and must end on the thread that began them.
#pragma once

#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <optional>

namespace interop {

// `cdef torch.NoGradGuard guard`: no graph is recorded in the whole function.
using NoGradGuard = c10::NoGradGuard;

// Holds a c10 guard that takes a flag. An object made with a flag only carries it; assigning it to a variable begins
// the mode there, and the end of that variable's function ends it.
template <class Guard>
class FlagGuard {
 public:
  FlagGuard() noexcept = default;
  explicit FlagGuard(bool enabled) noexcept : requested_(enabled) {}
  FlagGuard(const FlagGuard&) = delete;
  FlagGuard(FlagGuard&&) = delete;

  FlagGuard& operator=(FlagGuard&& request) {
    guard_.reset();
    if (request.requested_) {
      guard_.emplace(*request.requested_);
    }
    return *this;
  }

 protected:
  std::optional<bool> requested_;
  std::optional<Guard> guard_;
};

// `cdef torch.AutoGradMode mode = torch.AutoGradMode(False)`. Without a flag it changes nothing.
using AutoGradMode = FlagGuard<c10::AutoGradMode>;

// `cdef torch.InferenceMode mode`: inference mode in the whole function, as in C++; with `= torch.InferenceMode(False)`
// it is off from that statement on.
class InferenceMode : public FlagGuard<c10::InferenceMode> {
 public:
  InferenceMode() {
    guard_.emplace(true);
  }
  explicit InferenceMode(bool enabled) noexcept : FlagGuard(enabled) {}
};

}  // namespace interop
