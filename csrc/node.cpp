// The contexts of functions written in Cython, one of which is the node of the graph.
#include "node.h"

#include <ATen/functorch/BatchedTensorImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "interop/cython_type_name.h"
#include "interop/gil.h"

namespace interop::autograd {

using torch::autograd::variable_list;

namespace {

bool is_among(const at::Tensor& tensor, c10::ArrayRef<Input> inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [&](const Input& input) {
    return std::any_of(
        input.first, input.first + input.count, [&](const at::Tensor& one) { return one.is_same(tensor); });
  });
}

}  // namespace

ContextBase::~ContextBase() {
  drop_state();
}

std::unique_lock<std::mutex> ContextBase::locked(std::mutex& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock) {
    const NoGil released;  // the holder may run a hook, which is Python code
    lock.lock();
  }
  return lock;
}

void ContextBase::drop_state() noexcept {
  if (state_) {
    state_type_->destroy(state_);
    state_ = nullptr;
  }
}

void* ContextBase::state_of(const StateType& type) {
  const std::unique_lock lock = locked(state_mutex_);
  TORCH_CHECK_TYPE(
      !state_ || *state_type_->type == *type.type, "ctx.state: this context has a state of the type ",
      state_ ? spelled(*state_type_->type) : "", " already, but the call requests one of ", spelled(*type.type));
  if (!state_) {
    state_ = type.make();
    state_type_ = &type;
  }
  return state_;
}

StateParts ContextBase::state_parts(const std::string& name) const {
  StateParts parts;
  if (state_) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        state_type_->copy, "compiled autograd cannot trace ", name, ", whose ctx.state is ",
        spelled(*state_type_->type),
        ", because it must copy a state, and can do that only with numbers, at.SymInt, strings, vectors and optionals "
        "of these, and structs of up to 8 of them; keep tensors with ctx.save_for_backward, or leave compiled autograd "
        "off here");
    state_type_->copy(state_, parts, /*reads=*/false);
  }
  return parts;
}

void ContextBase::set_state(const StateType* type, StateParts parts) {
  if (type) {
    type->copy(state_of(*type), parts, /*reads=*/true);
  }
}

void ContextBase::mark_dirty(const at::Tensor& input) {
  TORCH_CHECK_VALUE(input.defined(), "ctx.mark_dirty: the tensor is undefined");
  dirty_.push_back(input);
}

void ContextBase::mark_non_differentiable(const at::Tensor& output) {
  TORCH_CHECK_VALUE(output.defined(), "ctx.mark_non_differentiable: the tensor is undefined");
  non_differentiable_.push_back(output);
}

void ContextBase::bump_versions(const std::string& name, c10::ArrayRef<Input> inputs) const {
  for (const at::Tensor& changed : dirty_) {
    TORCH_CHECK(is_among(changed, inputs), name, ": ctx.mark_dirty was given a tensor that is not an input of forward");
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

at::Tensor ContextOfSaved::saved_tensor(int64_t index) {
  TORCH_CHECK_INDEX(
      std::cmp_less(index, saved_.size()) && index >= 0, name_, ": ctx.saved_tensor(", index, "): forward has saved ",
      saved_.size(), " tensors");
  return saved_[index];
}

bool ContextOfSaved::needs_input_grad(int64_t argument) {
  TORCH_CHECK_INDEX(
      std::cmp_less(argument, ranges_.size()) && argument >= 0, name_, ": ctx.needs_input_grad(", argument,
      "): forward takes ", ranges_.size(), " arguments");
  const auto [begin, end, gradients] = ranges_[argument];
  return std::any_of(needs_.begin() + begin, needs_.begin() + end, [](bool needs) { return needs; });
}

void ContextOfSaved::save(const at::Tensor* const*, size_t, bool) {
  TORCH_CHECK(false, name_, ": ctx.save_for_backward has no effect outside of forward");
}

void* ContextOfSaved::state_of(const StateType& type) {
  return states_ ? states_->state_of(type) : ContextBase::state_of(type);
}

Ranges ranges_of(c10::ArrayRef<Input> inputs) {
  Ranges ranges;
  size_t begin = 0;
  for (const Input& input : inputs) {
    ranges.push_back({begin, begin + input.count, input.is_list ? input.count : 1});
    begin += input.count;
  }
  return ranges;
}

std::vector<at::Tensor> tensors_of(c10::ArrayRef<Input> inputs) {
  std::vector<at::Tensor> tensors;
  for (const Input& input : inputs) {
    tensors.insert(tensors.end(), input.first, input.first + input.count);
  }
  return tensors;
}

std::vector<at::Tensor> defined(c10::ArrayRef<Input> inputs) {
  std::vector<at::Tensor> tensors;
  for (const Input& input : inputs) {
    std::copy_if(input.first, input.first + input.count, std::back_inserter(tensors), [](const at::Tensor& tensor) {
      return tensor.defined();
    });
  }
  return tensors;
}

void refuse_without_jvp(const Definition& definition) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      definition.jvp, definition.name,
      ": an argument has a forward gradient, but the function has no forward-mode derivative; give it a jvp: "
      "define(name, forward, backward, jvp) for a Function, register_autograd(name, backward, setup_context, jvp) for "
      "an operator");
}

bool has_transforms() {
  return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

at::Tensor without_tangent(const at::Tensor& saved) {
  if (!saved.defined() || !has_transforms()) {
    return saved;
  }
  // _fw_primal has no rule for vmap, whose tensors wrap those of the level that jvp is called for.
  if (const auto* batch = at::functorch::maybeGetBatchedImpl(saved)) {
    return at::functorch::makeBatched(without_tangent(batch->value()), batch->bdim(), batch->level());
  }
  return saved._fw_primal(/*level=*/0);
}

Tensors call_jvp(
    const Definition& definition, Context& context, const Ranges& ranges, c10::ArrayRef<at::Tensor> tangents) {
  Tensors given, results;
  for (const auto& [begin, end, gradients] : ranges) {
    if (gradients > end - begin) {
      given.emplace_back();
    }
    given.append(tangents.begin() + begin, tangents.begin() + end);
  }
  TORCH_CHECK_TYPE(
      definition.jvp.outputs == any || definition.jvp.outputs == given.size(), definition.name,
      ": an argument is a list, but jvp takes ", definition.jvp.outputs,
      " tangents; declare it with one const vector[at.Tensor]&, which has those of all tensors");
  definition.jvp.call(definition.jvp.function, context, given, results);
  return results;
}

namespace {

torch::autograd::edge_list edges_of(c10::ArrayRef<Input> inputs) {
  size_t count = 0;
  for (const Input& input : inputs) {
    count += input.count;
  }
  torch::autograd::edge_list edges;
  edges.reserve(count);
  for (const Input& input : inputs) {
    for (size_t i = 0; i < input.count; ++i) {
      const at::Tensor& tensor = input.first[i];
      edges.push_back(tensor.defined() ? torch::autograd::impl::gradient_edge(tensor) : torch::autograd::Edge());
    }
  }
  return edges;
}

}  // namespace

FunctionNode::FunctionNode(std::shared_ptr<const Definition> definition, c10::ArrayRef<Input> inputs)
    : Node(edges_of(inputs)), definition_(std::move(definition)), ranges_(ranges_of(inputs)) {}

std::string FunctionNode::name() const {
  return definition_->name + "Backward";
}

void FunctionNode::save(const at::Tensor* const* tensors, size_t count, bool for_jvp) {
  TORCH_CHECK(
      in_forward_, name(), ": ctx.save_for_", for_jvp ? "forward" : "backward", " has no effect outside of forward");
  if (for_jvp) {
    for_jvp_ = std::make_unique<std::vector<at::Tensor>>();
    for (size_t i = 0; i < count; ++i) {
      for_jvp_->push_back(*tensors[i]);
    }
    return;
  }
  TORCH_CHECK(!has_saved_, name(), ": ctx.save_for_backward was called twice; give it all tensors at once");
  has_saved_ = true;
  for (size_t i = 0; i < count; ++i) {
    to_save_.push_back(*tensors[i]);
  }
}

size_t FunctionNode::saved_tensors() {
  return in_jvp_ && for_jvp_ ? for_jvp_->size() : in_forward_ ? to_save_.size() : saved_.size();
}

at::Tensor FunctionNode::saved_tensor(int64_t index) {
  TORCH_CHECK_INDEX(
      std::cmp_less(index, saved_tensors()) && index >= 0, name(), ": ctx.saved_tensor(", index,
      "): forward has saved ", saved_tensors(), " tensors");
  if (in_forward_) {
    const at::Tensor& saved = in_jvp_ && for_jvp_ ? (*for_jvp_)[index] : to_save_[index];
    return in_jvp_ ? without_tangent(saved) : saved;
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
    // The engine may need fewer gradients than there are edges: those requested from torch.autograd.grad.
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

// Whether this output needs only a gradient edge: forward has just created it, without a tangent.
bool is_plain(const at::Tensor& output) {
  return output.defined() && !torch::autograd::impl::get_autograd_meta(output) &&
         torch::autograd::isDifferentiableType(output.scalar_type());
}

// torch's own processing of outputs. From 2.14 on it also reports the node attached to them, and the caller runs the
// node creation hooks. A template, so that functions missing from this torch are not looked up.
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

void FunctionNode::finish(const NodePtr<Node>& self, c10::ArrayRef<Input> inputs, Tensors& outputs) {
  bool plain = dirty_.empty() && non_differentiable_.empty();
  for (size_t i = 0; plain && i < outputs.size(); ++i) {
    plain = is_plain(outputs[i]) && !is_among(outputs[i], inputs);
    for (size_t j = 0; plain && j < i; ++j) {
      plain = !outputs[i].is_same(outputs[j]);
    }
  }
  if (!plain) {
    const NodePtr<Node> attached = wrap(inputs, outputs, self, {});  // no input has a tangent
    keep();
    tell(attached);
    return;
  }
  for (const at::Tensor& output : outputs) {
    torch::autograd::impl::set_gradient_edge(output, {self, add_input_metadata(output)});
  }
  keep();
  if (!outputs.empty()) {
    tell(self);
  }
}

void FunctionNode::finish_with_tangents(
    const NodePtr<Node>& self, c10::ArrayRef<Input> inputs, Tensors& outputs, bool has_graph) {
  const std::vector<at::Tensor> all = tensors_of(inputs);
  const auto jvp = [&](const variable_list&, const variable_list& tangents) {
    std::vector<at::Tensor> each;  // also for undefined inputs, which torch does not get
    const at::Tensor* next = tangents.data();
    for (const at::Tensor& input : all) {
      each.push_back(input.defined() ? *next++ : at::Tensor());
      if (materialize_grads_ && input.defined() && !each.back().defined() &&
          torch::autograd::isDifferentiableType(input.scalar_type())) {
        each.back() = at::zeros_like(input);
      }
    }
    in_jvp_ = true;
    Tensors results;
    {
      const at::AutoFwGradMode mode(has_transforms());
      results = call_jvp(*definition_, *this, ranges_, each);
    }
    in_jvp_ = false;
    for (size_t i = 0; i < results.size() && i < outputs.size(); ++i) {
      const auto is_output = [&](const at::Tensor& marked) { return marked.is_same(outputs[i]); };
      if (!results[i].defined() && outputs[i].defined() &&
          torch::autograd::isDifferentiableType(outputs[i].scalar_type()) &&
          std::none_of(non_differentiable_.begin(), non_differentiable_.end(), is_output)) {
        results[i] = at::zeros_like(outputs[i]);  // torch requires a tangent of each output that can have one
      }
    }
    return variable_list(results.begin(), results.end());
  };
  const NodePtr<Node> attached = wrap(inputs, outputs, has_graph ? self : NodePtr<Node>(), jvp);
  if (has_graph) {
    keep();
    tell(attached);
  }
}

NodePtr<torch::autograd::Node> FunctionNode::wrap(
    c10::ArrayRef<Input> inputs, Tensors& outputs, const NodePtr<Node>& self, const Jvp& jvp) {
  bump_versions(definition_->name, inputs);
  const auto impls = [](const std::vector<at::Tensor>& tensors) {
    std::unordered_set<at::TensorImpl*> set;
    for (const at::Tensor& tensor : tensors) {
      set.insert(tensor.unsafeGetTensorImpl());
    }
    return set;
  };
  std::vector<std::optional<at::Tensor>> raw;
  for (const at::Tensor& output : outputs) {
    raw.push_back(output.defined() ? std::optional(output) : std::nullopt);
  }
  NodePtr<Node> attached;
  std::vector<std::optional<at::Tensor>> wrapped = wrap_outputs(
      attached, defined(inputs), impls(non_differentiable_), impls(dirty_),
      at::ArrayRef<std::optional<at::Tensor>>(raw), self, torch::autograd::_jvp_fn_t(jvp),
      std::unordered_set<at::TensorImpl*>(),
      torch::autograd::_view_as_self_fn_t([](const at::Tensor& tensor) { return tensor.view_as(tensor); }),
      /*pure_view=*/false);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (self && wrapped[i] && input_metadata(i).was_default_constructed()) {
      without_gradient_.emplace_back(i, torch::autograd::VariableInfo(*wrapped[i]));
    }
    outputs[i] = wrapped[i].value_or(at::Tensor());
  }
  return attached;
}

void FunctionNode::keep() {
  saved_.reserve(to_save_.size());
  for (const at::Tensor& tensor : to_save_) {
    const auto* meta = tensor.defined() ? torch::autograd::impl::get_autograd_meta(tensor) : nullptr;
    const bool is_view = meta && meta->is_view_ && tensor.is_view();  // the field spares most tensors the call
    // A saved output must not own this node, which owns it. A view that was changed in place leads to this node
    // through its base.
    const bool is_changed_view =
        is_view && !tensor.is_leaf() &&
        std::any_of(dirty_.begin(), dirty_.end(), [&](const at::Tensor& changed) { return changed.is_same(tensor); });
    // grad_fn() brings a view up to date whose base forward has changed, and costs a call through a table.
    const bool is_output = is_changed_view || (meta && (is_view ? tensor.grad_fn() : meta->grad_fn_).get() == this);
    saved_.emplace_back(tensor, is_output, is_changed_view);
  }
  end_forward();
}

void FunctionNode::end_forward() noexcept {
  to_save_.clear();
  for_jvp_.reset();
  forget_marks();
  in_forward_ = false;
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
  return by_tensor(*definition_, ranges_, results);
}

variable_list by_tensor(const Definition& definition, const Ranges& ranges, Tensors& results) {
  size_t expected = 0;
  for (const Range& range : ranges) {
    expected += range.gradients;
  }
  TORCH_CHECK(
      results.size() == expected, definition.name, "Backward: backward returned ", results.size(),
      " gradients, expected ", expected,
      ", one for each argument of forward (for a list, one for each of its tensors)");
  variable_list result;
  result.reserve(ranges.empty() ? 0 : ranges.back().end);
  size_t next = 0;
  for (size_t argument = 0; argument < ranges.size(); ++argument) {
    const auto [begin, end, gradients] = ranges[argument];
    if (gradients > end - begin) {
      TORCH_CHECK(
          !results[next].defined(), definition.name, "Backward: backward returned a gradient for argument ",
          argument + 1, " of forward, which is not a tensor; return at.Tensor() there");
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

// Lists the metadata of each output, in which the trace replaces sizes by symbols.
void FunctionNode::list_outputs() const {
  outputs_.clear();
  for (size_t i = 0; i < num_inputs(); ++i) {
    torch::autograd::VariableInfo& info = outputs_.emplace_back();
    const torch::autograd::InputMetadata& metadata = input_metadata(i);
    info.requires_grad = false;
    info.is_empty = metadata.was_default_constructed();
    if (!info.is_empty) {
      info.layout = metadata.options().layout();
      info.device = metadata.options().device();
      info.scalar_type = c10::typeMetaToScalarType(metadata.options().dtype());
      info.size.assign(metadata.shape_as_dim_vector().begin(), metadata.shape_as_dim_vector().end());
    }
  }
  for (const auto& [i, info] : without_gradient_) {
    outputs_[i] = info;
  }
}

void FunctionNode::compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const {
  list_outputs();
  args.collect(reinterpret_cast<uint64_t>(definition_.get()));
  for (const auto& [begin, end, gradients] : ranges_) {
    args.collect(static_cast<uint64_t>(begin));
    args.collect(static_cast<uint64_t>(end));
    args.collect(static_cast<uint64_t>(gradients));
  }
  args.collect(materialize_grads_);
  args.collect(reinterpret_cast<uint64_t>(state_type_));
  args.collect(saved_, /*is_output=*/true);
  args.collect(outputs_);
  // The state becomes inputs of the graph, so that another value needs no other graph. A key made of it would be cut
  // off after 65,535 bytes.
  StateParts parts = state_parts(name());
  state_bytes_ = at::empty({static_cast<int64_t>(parts.bytes.size())}, at::kByte);
  std::copy(parts.bytes.begin(), parts.bytes.end(), static_cast<char*>(state_bytes_.mutable_data_ptr()));
  state_sizes_ = std::move(parts.sizes);
  args.collect(state_bytes_);
  args.collect(state_sizes_);
}

// Puts a call of backward into the graph, opaque to torch.compile.
variable_list FunctionNode::apply_with_saved(
    const variable_list& grads, torch::dynamo::autograd::SwapSavedVariables& swap) {
  using namespace torch::dynamo::autograd;
  swap.before(saved_);
  swap.before(outputs_);
  swap.before(state_bytes_);
  swap.before(state_sizes_);
  std::vector<at::Tensor> saved;
  for (const torch::autograd::SavedVariable& one : saved_) {
    saved.push_back(one.unpack(getptr()));
  }
  std::vector<bool> needs;
  for (size_t edge = 0; edge < num_outputs(); ++edge) {
    needs.push_back(task_should_compute_output(edge));
  }
  PackedArgs packed;
  packed.pack(saved);
  packed.pack(needs);
  packed.pack(outputs_);
  packed.pack(state_bytes_);
  packed.pack(state_sizes_);
  const std::vector<c10::IValue> values = std::move(packed).vec();
  std::vector<at::TypePtr> schema;
  for (const c10::IValue& value : values) {
    schema.push_back(value.isTensor() ? at::TypePtr(at::TensorType::get()) : value.type());
  }
  const auto backward = [definition = definition_, ranges = ranges_, state_type = state_type_,
                         materialize = materialize_grads_](
                            const variable_list& grads, const std::vector<c10::IValue>& values) {
    PackedArgs packed(values);
    auto saved = packed.unpack<std::vector<at::Tensor>>();
    auto needs = packed.unpack<std::vector<bool>>();
    const auto outputs = packed.unpack<std::vector<torch::autograd::VariableInfo>>();
    const auto bytes = packed.unpack<at::Tensor>();
    StateParts parts;
    parts.bytes.assign(static_cast<const char*>(bytes.const_data_ptr()), static_cast<size_t>(bytes.numel()));
    parts.sizes = packed.unpack<std::vector<c10::SymInt>>();
    at::OptionalDeviceGuard device;
    Tensors given, results;
    for (size_t i = 0; i < grads.size(); ++i) {
      given.push_back(grads[i].defined() || !materialize ? grads[i] : outputs[i].zeros(device));
    }
    ContextOfSaved context(definition->name + "Backward", ranges, std::move(saved), std::move(needs));
    context.set_state(state_type, std::move(parts));
    definition->backward.call(definition->backward.function, context, given, results);
    return by_tensor(*definition, ranges, results);
  };
  const auto& compiler = getPyCompilerInterface();
  const std::string bound = compiler->bind_function(
      swap.get_py_compiler(), name(), backward, schema, /*is_custom_function=*/true, /*is_traceable=*/false);
  variable_list results = compiler->call_function(
      swap.get_py_compiler(), "apply_functional", bound, grads, values,
      IValuePacker<std::vector<std::optional<torch::autograd::InputMetadata>>>::pack(get_input_metadata(next_edges())));
  swap.after(saved_);
  swap.after(outputs_);
  swap.after(state_bytes_);
  swap.after(state_sizes_);
  return results;
}

}  // namespace interop::autograd
