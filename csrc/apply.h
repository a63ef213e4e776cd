// Calls functions and makes their results differentiable.
#pragma once

#include "interop/gradient.h"

namespace interop::autograd {

// Implements interop::Runtime::apply().
void apply(
    const std::shared_ptr<const Definition>& definition,
    c10::ArrayRef<Input> inputs,
    c10::function_ref<void(Context&, const at::Tensor*)> forward,
    Tensors& outputs);

// The derivatives to record.
struct Wanted {
  bool graph = false;
  bool tangents = false;  // an input has a tangent

  explicit operator bool() const noexcept {
    return graph || tangents;
  }
};

// Raises if an input has a tangent and the function has no jvp.
Wanted wanted(const Definition& definition, c10::ArrayRef<at::Tensor> inputs);

// Calls `forward` with a new node as its context, and makes the outputs results of the node. `forward` appends to
// `outputs` and records neither a graph nor tangents itself.
void record(
    const std::shared_ptr<const Definition>& definition,
    c10::ArrayRef<Input> inputs,
    Wanted wanted,
    c10::function_ref<void(Context&)> forward,
    Tensors& outputs);

}  // namespace interop::autograd
