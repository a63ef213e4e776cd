#include "apply.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <optional>

#include "node.h"
#include "transforms.h"

namespace interop::autograd {

Wanted wanted(const Definition& definition, c10::ArrayRef<at::Tensor> inputs) {
  Wanted found;
  for (const at::Tensor& input : inputs) {
    if (input.defined()) {
      found.tangents = found.tangents || input._fw_grad(0).defined();
      found.graph = found.graph || input.requires_grad();
    }
  }
  if (found.tangents) {
    refuse_without_jvp(definition);
  }
  found.graph = found.graph && at::GradMode::is_enabled();
  return found;
}

void record(
    const std::shared_ptr<const Definition>& definition,
    c10::ArrayRef<Input> inputs,
    Wanted wanted,
    c10::function_ref<void(Context&)> forward,
    Tensors& outputs) {
  const NodePtr<torch::autograd::Node> self = make_node<FunctionNode>(definition, inputs);
  auto& node = static_cast<FunctionNode&>(*self);
  forward(node);
  try {
    if (wanted.tangents) {
      node.finish_with_tangents(self, inputs, outputs, wanted.graph);
    } else {
      node.finish(self, inputs, outputs);
    }
  } catch (...) {  // from a hook or a jvp, after outputs got their edges
    node.end_forward();
    throw;
  }
}

void apply(
    const std::shared_ptr<const Definition>& definition,
    c10::ArrayRef<Input> inputs,
    c10::function_ref<void(Context&, const at::Tensor*)> forward,
    Tensors& outputs) {
  // Under torch.func, the dispatcher calls an operator once for each transform, with this key excluded. A function
  // called while the key is active would see the transforms' wrapper tensors and take them for ordinary ones.
  constexpr auto transforms = c10::DispatchKey::FuncTorchDynamicLayerFrontMode;
  const bool transformed = has_transforms();
  if (transformed && !c10::impl::tls_is_dispatch_key_excluded(transforms)) {
    apply_transformed(definition, inputs, forward, outputs);
    return;
  }
  Wanted all;
  for (const Input& input : inputs) {
    const Wanted one = wanted(*definition, {input.first, input.count});
    all = {all.graph || one.graph, all.tangents || one.tangents};
  }
  const auto alone = [&](Context& context) {
    if (transformed) {
      // One transform level calls this. Outer levels record graphs of their own, so the grad mode stays unchanged.
      const at::AutoDispatchBelowAutograd below;
      forward(context, nullptr);
    } else {
      const at::AutoGradMode mode(false);
      std::optional<c10::AutoFwGradMode> tangents;
      if (all.tangents) {
        tangents.emplace(false);
      }
      forward(context, nullptr);
    }
  };
  if (all) {
    record(definition, inputs, all, alone, outputs);
    return;
  }
  ContextWithoutGraph context;
  alone(context);
  context.bump_versions(definition->name, inputs);
}

}  // namespace interop::autograd
