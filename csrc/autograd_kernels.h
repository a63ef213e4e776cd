// Boxed kernels, which fit any operator because they use the dispatcher's stack.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>

#include <memory>
#include <optional>
#include <vector>

#include "interop/setup_context.h"

namespace interop::boxed {

// For the Autograd key: calls the kernels below it and attaches gradients to the results.
c10::KernelFunction with_gradient(
    std::shared_ptr<const autograd::Definition> definition, std::optional<autograd::SetupContext> setup);

// For an Autocast key: casts floating-point tensors on the device to `dtype`, as autocast does for its own operators.
// Undefined selects autocast's dtype at the time of the call.
c10::KernelFunction with_cast(c10::DispatchKey key, at::DeviceType device, at::ScalarType dtype);

// Wraps `kernel`, which takes integers where the schema has SymInts. Raises if an argument is symbolic.
c10::KernelFunction with_numbers(c10::KernelFunction kernel, std::vector<size_t> numbers);

// For the ADInplaceOrView key: increments the versions of the tensors that the schema marks as changed.
c10::KernelFunction with_new_versions();

}  // namespace interop::boxed
