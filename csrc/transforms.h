// Functions called under the transforms of torch.func.
#pragma once

#include "interop/gradient.h"

namespace interop::autograd {

// Like apply(), through a subclass of torch.autograd.Function in Python, the only kind that the transforms support.
void apply_transformed(
    const std::shared_ptr<const Definition>& definition,
    c10::ArrayRef<Input> inputs,
    c10::function_ref<void(Context&, const at::Tensor*)> forward,
    Tensors& outputs);

}  // namespace interop::autograd
