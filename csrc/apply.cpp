#include "apply.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <iterator>

#include "node.h"

namespace interop::autograd {

namespace {

std::vector<at::Tensor> defined(c10::ArrayRef<Input> inputs) {
  std::vector<at::Tensor> tensors;
  for (const Input& input : inputs) {
    std::copy_if(input.first, input.first + input.count, std::back_inserter(tensors), [](const at::Tensor& tensor) {
      return tensor.defined();
    });
  }
  return tensors;
}

}  // namespace

bool needs_graph(const std::string& name, c10::ArrayRef<at::Tensor> inputs) {
  bool found = false;
  for (const at::Tensor& input : inputs) {
    if (input.defined()) {
      TORCH_CHECK_NOT_IMPLEMENTED(
          !input._fw_grad(0).defined(), name,
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
  forward(*node);
  node->finish(defined(inputs), outputs);
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
      "torch.func; register it as an operator (torch.library define, impl and register_autograd)");
  bool has_graph = false;
  for (const Input& input : inputs) {
    has_graph |= needs_graph(definition->name, {input.first, input.count});
  }
  const auto without_graph = [&](Context& context) {
    if (c10::impl::tls_is_dispatch_key_included(transforms)) {
      // One level of transforms calls this. Others around it record graphs of their own, so the mode stays as it is.
      const at::AutoDispatchBelowAutograd below;
      forward(context);
    } else {
      const at::AutoGradMode mode(false);
      forward(context);
    }
  };
  if (has_graph) {
    record(definition, inputs, without_graph, outputs);
    return;
  }
  ContextWithoutGraph context;
  without_graph(context);
  context.bump_versions(definition->name, defined(inputs));
}

}  // namespace interop::autograd
