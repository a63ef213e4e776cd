// Calls functions so that their results have a gradient.
#pragma once

#include "interop/gradient.h"

namespace interop::autograd {

// The apply() of interop::Runtime.
void apply(
    const std::shared_ptr<const Definition>& definition,
    c10::ArrayRef<Input> inputs,
    c10::function_ref<void(Context&, const at::Tensor*)> forward,
    Tensors& outputs);

// What a call has to do besides.
struct Wanted {
  bool graph = false;
  bool tangents = false;  // an input has one

  explicit operator bool() const noexcept {
    return graph || tangents;
  }
};

// Raises if an input has a tangent, and the function no jvp.
Wanted wanted(const Definition& definition, c10::ArrayRef<at::Tensor> inputs);

// Calls `forward`, which adds to `outputs` and records neither a graph nor tangents of its own, with a new node, and
// makes the outputs results of the node.
void record(
    const std::shared_ptr<const Definition>& definition,
    c10::ArrayRef<Input> inputs,
    Wanted wanted,
    c10::function_ref<void(Context&)> forward,
    Tensors& outputs);

}  // namespace interop::autograd
