// Functions that are called under the transforms of torch.func.
#pragma once

#include "interop/gradient.h"

namespace interop::autograd {

// As apply(), by a class of Python's torch.autograd.Function, which is the only kind that the transforms know.
void apply_transformed(
    const std::shared_ptr<const Definition>& definition,
    c10::ArrayRef<Input> inputs,
    c10::function_ref<void(Context&, const at::Tensor*)> forward,
    Tensors& outputs);

}  // namespace interop::autograd
