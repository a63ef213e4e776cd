// The kernel that calls a rule for torch.func.vmap.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>

#include "interop/vmap.h"

namespace interop::boxed {

// For the FuncTorchBatched key: calls the rule with the tensors that hold all examples. If no argument has examples at
// the current level, calls the operator below that level.
c10::KernelFunction with_rule(vmap::Rule rule);

}  // namespace interop::boxed
