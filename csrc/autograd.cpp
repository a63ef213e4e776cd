#include "autograd.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <iterator>

#include "node.h"

namespace interop::autograd {

bool needs_graph(const std::string& name, c10::ArrayRef<at::Tensor> inputs) {
  bool found = false;
  for (const at::Tensor& input : inputs) {
    if (input.defined()) {
      TORCH_CHECK_NOT_IMPLEMENTED(
          !input._fw_grad(0).defined(),
          name,
          ": an argument has a forward gradient, and functions written in Cython have no forward-mode derivative "
          "(jvp)");
      found = found || input.requires_grad();
    }
  }
  return found && at::GradMode::is_enabled();
}

void record(
    const std::shared_ptr<const Definition>& definition,
    c10::ArrayRef<Input> inputs,
    c10::function_ref<void(Context&)> forward,
    Tensors& outputs) {
  const auto node = make_node<FunctionNode>(definition, inputs);
  {
    const at::AutoGradMode mode(false);
    forward(*node);
  }
  std::vector<at::Tensor> tensors;
  for (const Input& input : inputs) {
    std::copy_if(input.first, input.first + input.count, std::back_inserter(tensors), [](const at::Tensor& tensor) {
      return tensor.defined();
    });
  }
  node->finish(tensors, outputs);
}

void apply(
    const std::shared_ptr<const Definition>& definition,
    c10::ArrayRef<Input> inputs,
    c10::function_ref<void(Context&)> forward,
    Tensors& outputs) {
  // Under torch.func's transforms an operator is called once for each of them, with this key switched off. A function
  // that is called while it is on would see the transforms' own tensors and take them for ordinary ones.
  constexpr auto transforms = c10::DispatchKey::FuncTorchDynamicLayerFrontMode;
  TORCH_CHECK_NOT_IMPLEMENTED(
      !c10::impl::tls_is_dispatch_key_included(transforms) || c10::impl::tls_is_dispatch_key_excluded(transforms),
      definition->name,
      ": a function written in Cython cannot be called directly under vmap, grad and the other transforms of "
      "torch.func; "
      "register it as an operator (torch.library define, impl and register_autograd)");
  bool has_graph = false;
  for (const Input& input : inputs) {
    has_graph |= needs_graph(definition->name, {input.first, input.count});
  }
  if (has_graph) {
    record(definition, inputs, forward, outputs);
    return;
  }
  ContextWithoutGraph context;
  const at::AutoGradMode mode(false);
  forward(context);
  for (at::TensorImpl* changed : context.dirty) {
    changed->bump_version();
  }
}

}  // namespace interop::autograd
