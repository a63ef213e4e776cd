// The contexts of functions written in Cython, and the node of the graph that is one of them.
#include "node.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "interop/cython_type_name.h"
#include "interop/gil.h"

namespace interop::autograd {

using torch::autograd::variable_list;

ContextBase::~ContextBase() {
  drop_state();
}

std::unique_lock<std::mutex> ContextBase::locked(std::mutex& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock) {
    const NoGil released;  // who has it may run a hook, which is Python
    lock.lock();
  }
  return lock;
}

void ContextBase::drop_state() noexcept {
  if (state_.object) {
    state_.destroy(state_.object);
    state_ = {};
  }
}

void* ContextBase::state_of(const std::type_info& type, void* (*make)(), void (*destroy)(void*)) {
  const std::unique_lock lock = locked(state_mutex_);
  TORCH_CHECK_TYPE(
      !state_.object || *state_.type == type, "ctx.state: this context has a state of the type ",
      state_.type ? spelled(*state_.type) : "", " already, but the call requests one of ", spelled(type));
  if (!state_.object) {
    state_ = {&type, make(), destroy};
  }
  return state_.object;
}

void ContextBase::mark_dirty(const at::Tensor& input) {
  TORCH_CHECK_VALUE(input.defined(), "ctx.mark_dirty: the tensor is undefined");
  dirty_.push_back(input);
}

void ContextBase::mark_non_differentiable(const at::Tensor& output) {
  TORCH_CHECK_VALUE(output.defined(), "ctx.mark_non_differentiable: the tensor is undefined");
  non_differentiable_.push_back(output);
}

void ContextBase::bump_versions(const std::string& name, const std::vector<at::Tensor>& inputs) const {
  for (const at::Tensor& changed : dirty_) {
    TORCH_CHECK(
        std::any_of(inputs.begin(), inputs.end(), [&](const at::Tensor& input) { return input.is_same(changed); }),
        name, ": ctx.mark_dirty was given a tensor that is not an input of forward");
  }
  for (const at::Tensor& changed : dirty_) {
    if (!changed.is_inference()) {
      torch::autograd::impl::bump_version(changed);
    }
  }
}

at::Tensor ContextWithoutGraph::saved_tensor(int64_t) {
  TORCH_CHECK(false, "ctx.saved_tensor: nothing is kept when no input requires a gradient; call it in backward");
}

FunctionNode::FunctionNode(std::shared_ptr<const Definition> definition, c10::ArrayRef<Input> inputs)
    : definition_(std::move(definition)) {
  size_t begin = 0;
  for (const Input& input : inputs) {
    ranges_.push_back({begin, begin + input.count, input.is_list ? input.count : 1});
    begin += input.count;
  }
  torch::autograd::edge_list edges;
  edges.reserve(begin);
  for (const Input& input : inputs) {
    for (size_t i = 0; i < input.count; ++i) {
      const at::Tensor& tensor = input.first[i];
      edges.push_back(tensor.defined() ? torch::autograd::impl::gradient_edge(tensor) : torch::autograd::Edge());
    }
  }
  set_next_edges(std::move(edges));
}

std::string FunctionNode::name() const {
  return definition_->name + "Backward";
}

void FunctionNode::save(const at::Tensor* const* tensors, size_t count) {
  TORCH_CHECK(in_forward_, name(), ": ctx.save_for_backward has no effect outside of forward");
  TORCH_CHECK(!has_saved_, name(), ": ctx.save_for_backward was called twice; give it all tensors at once");
  has_saved_ = true;
  for (size_t i = 0; i < count; ++i) {
    to_save_.push_back(*tensors[i]);
  }
}

size_t FunctionNode::saved_tensors() {
  return in_forward_ ? to_save_.size() : saved_.size();
}

at::Tensor FunctionNode::saved_tensor(int64_t index) {
  TORCH_CHECK_INDEX(
      std::cmp_less(index, saved_tensors()) && index >= 0, name(), ": ctx.saved_tensor(", index,
      "): forward has saved ", saved_tensors(), " tensors");
  if (in_forward_) {
    return to_save_[index];
  }
  const std::unique_lock lock = locked(mutex_);
  return saved_[index].unpack(getptr());
}

bool FunctionNode::needs_input_grad(int64_t argument) {
  TORCH_CHECK_INDEX(
      std::cmp_less(argument, ranges_.size()) && argument >= 0, name(), ": ctx.needs_input_grad(", argument,
      "): forward takes ", ranges_.size(), " arguments");
  const auto [begin, end, gradients] = ranges_[argument];
  for (size_t edge = begin; edge < end; ++edge) {
    // The engine may want fewer gradients than there are edges: those that torch.autograd.grad was asked for.
    if (in_forward_ ? should_compute_output(edge) : task_should_compute_output(edge)) {
      return true;
    }
  }
  return false;
}

void FunctionNode::set_materialize_grads(bool value) {
  materialize_grads_ = value;
}

namespace {

// Whether all that has to be done for this output is to give it a gradient edge: a tensor that forward has just made.
bool is_plain(const at::Tensor& output) {
  return output.defined() && !torch::autograd::impl::get_autograd_meta(output) &&
         torch::autograd::isDifferentiableType(output.scalar_type()) && !output._fw_grad(0).defined();
}

// torch's own treatment of outputs. From 2.14 on it also says which node was attached to them, and the caller tells
// those who have asked to know of new nodes. A template, so that what this torch lacks is not looked up.
template <class Node, class... A>
auto wrap_outputs(NodePtr<Node>& attached, const A&... arguments) {
  using torch::autograd::_wrap_outputs;
  if constexpr (requires { _wrap_outputs(arguments..., attached); }) {
    return _wrap_outputs(arguments..., attached);
  } else {
    return _wrap_outputs(arguments...);
  }
}
template <class Node>
void tell(const NodePtr<Node>& attached) {
  if constexpr (requires { fire_node_creation_hooks(attached); }) {
    if (attached) {
      fire_node_creation_hooks(attached);
    }
  }
}

}  // namespace

void FunctionNode::finish(const std::vector<at::Tensor>& inputs, Tensors& outputs) {
  bool plain = dirty_.empty() && non_differentiable_.empty();
  for (size_t i = 0; plain && i < outputs.size(); ++i) {
    plain = is_plain(outputs[i]);
    for (const at::Tensor& input : inputs) {
      plain = plain && !input.is_same(outputs[i]);
    }
    for (size_t j = 0; plain && j < i; ++j) {
      plain = !outputs[i].is_same(outputs[j]);
    }
  }
  const NodePtr<Node> self = getptr();
  NodePtr<Node> attached;
  if (plain) {
    for (const at::Tensor& output : outputs) {
      torch::autograd::impl::set_gradient_edge(output, {self, add_input_metadata(output)});
    }
    attached = outputs.empty() ? nullptr : self;
  } else {
    bump_versions(name(), inputs);
    const auto impls = [](const std::vector<at::Tensor>& tensors) {
      std::unordered_set<at::TensorImpl*> set;
      for (const at::Tensor& tensor : tensors) {
        set.insert(tensor.unsafeGetTensorImpl());
      }
      return set;
    };
    const auto no_jvp = [](const variable_list&, const variable_list&) -> variable_list {
      TORCH_CHECK_NOT_IMPLEMENTED(false, "functions written in Cython have no forward-mode derivative");
    };
    std::vector<std::optional<at::Tensor>> raw;
    for (const at::Tensor& output : outputs) {
      raw.push_back(output.defined() ? std::optional(output) : std::nullopt);
    }
    std::vector<std::optional<at::Tensor>> wrapped = wrap_outputs(
        attached, inputs, impls(non_differentiable_), impls(dirty_), at::ArrayRef<std::optional<at::Tensor>>(raw), self,
        torch::autograd::_jvp_fn_t(no_jvp), std::unordered_set<at::TensorImpl*>(),
        torch::autograd::_view_as_self_fn_t([](const at::Tensor& tensor) { return tensor.view_as(tensor); }),
        /*pure_view=*/false);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (wrapped[i] && input_metadata(i).was_default_constructed()) {
        without_gradient_.emplace_back(i, torch::autograd::VariableInfo(*wrapped[i]));
      }
      outputs[i] = wrapped[i].value_or(at::Tensor());
    }
  }
  saved_.reserve(to_save_.size());
  for (const at::Tensor& tensor : to_save_) {
    // A kept output must not keep this node, which keeps it. From a view that was changed in place, the way here leads
    // through its base.
    const bool is_changed_view =
        tensor.defined() && tensor.is_view() && !tensor.is_leaf() &&
        std::any_of(dirty_.begin(), dirty_.end(), [&](const at::Tensor& changed) { return changed.is_same(tensor); });
    const bool is_output = is_changed_view || (tensor.defined() && tensor.grad_fn() == self);
    saved_.emplace_back(tensor, is_output, is_changed_view);
  }
  to_save_.clear();
  // An output that was changed in place keeps this node, which must not keep it.
  dirty_.clear();
  non_differentiable_.clear();
  in_forward_ = false;
  tell(attached);
}

variable_list FunctionNode::apply(variable_list&& grads) {
  at::OptionalDeviceGuard device;
  Tensors given;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined() && materialize_grads_ && !input_metadata(i).was_default_constructed()) {
      grads[i] = input_metadata(i).zeros_like();
    }
    given.push_back(std::move(grads[i]));
  }
  if (materialize_grads_) {
    for (auto& [i, info] : without_gradient_) {
      given[i] = info.zeros(device);
    }
  }
  Tensors results;
  definition_->backward.call(definition_->backward.function, *this, given, results);
  return by_edge(results);
}

// Gradients of the arguments become those of their tensors.
variable_list FunctionNode::by_edge(Tensors& results) const {
  size_t expected = 0;
  for (const Range& range : ranges_) {
    expected += range.gradients;
  }
  TORCH_CHECK(
      results.size() == expected, name(), ": backward returned ", results.size(), " gradients, expected ", expected,
      ", one for each argument of forward (for a list, one for each of its tensors)");
  variable_list result;
  result.reserve(num_outputs());
  size_t next = 0;
  for (size_t argument = 0; argument < ranges_.size(); ++argument) {
    const auto [begin, end, gradients] = ranges_[argument];
    if (gradients > end - begin) {
      TORCH_CHECK(
          !results[next].defined(), name(), ": backward returned a gradient for argument ", argument + 1,
          " of forward, which is not a tensor; return at.Tensor() there");
      ++next;
    }
    for (size_t edge = begin; edge < end; ++edge) {
      result.push_back(std::move(results[next++]));
    }
  }
  return result;
}

void FunctionNode::release_variables() {
  const std::unique_lock lock = locked(mutex_);
  for (torch::autograd::SavedVariable& saved : saved_) {
    saved.reset_data();
  }
}

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13
void FunctionNode::release_resources() {
  Node::release_resources();
  saved_.clear();
  to_save_.clear();
  drop_state();
}
#endif

void FunctionNode::compiled_args(torch::dynamo::autograd::CompiledNodeArgs&) const {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "compiled autograd cannot trace ", name(),
      ", a function written in Cython. Compile the forward pass as well "
      "(torch.compile traces the gradient of a registered operator with it), or leave compiled autograd off here");
}

}  // namespace interop::autograd
