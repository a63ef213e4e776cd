// Calls functions so that their results have a gradient.
#pragma once

#include "interop/gradient.h"

namespace interop::autograd {

// The apply() of interop::Runtime.
void apply(
    const std::shared_ptr<const Definition>& definition,
    c10::ArrayRef<Input> inputs,
    c10::function_ref<void(Context&)> forward,
    Tensors& outputs);

// Whether a function of these inputs leaves a node. Raises if one has a forward gradient, for which there is no
// formula.
bool needs_graph(const std::string& name, c10::ArrayRef<at::Tensor> inputs);

// Calls `forward`, which adds to `outputs` and records no graph of its own, with a new node, and makes the outputs
// results of the node.
void record(
    const std::shared_ptr<const Definition>& definition,
    c10::ArrayRef<Input> inputs,
    c10::function_ref<void(Context&)> forward,
    Tensors& outputs);

}  // namespace interop::autograd
