// Kernels for any operator, which work on the dispatcher's stack.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>

#include <memory>
#include <optional>
#include <vector>

#include "interop/setup_context.h"

namespace interop::boxed {

// For the key Autograd: calls the kernels below it, and gives the results a gradient.
c10::KernelFunction with_gradient(
    std::shared_ptr<const autograd::Definition> definition, std::optional<autograd::SetupContext> setup);

// For an Autocast key: casts floating-point tensors of the device to `dtype`, as autocast does for its own operators;
// Undefined stands for the dtype that autocast has at the call.
c10::KernelFunction with_cast(c10::DispatchKey key, at::DeviceType device, at::ScalarType dtype);

// `kernel`, which takes numbers where the operator's schema has sizes that may be symbolic: those are refused.
c10::KernelFunction with_numbers(c10::KernelFunction kernel, std::vector<size_t> numbers);

// For the key ADInplaceOrView: counts up the versions of the tensors that the operator changes, by its schema.
c10::KernelFunction with_new_versions();

}  // namespace interop::boxed
