// The autograd node of a function written in Cython.
#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/autograd/variable_info.h>

#include <torch/headeronly/version.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "interop/gradient.h"

namespace interop::autograd {

// Up to 2.12, torch held nodes by shared_ptr.
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13
template <class T>
using NodePtr = c10::intrusive_ptr<T>;
template <class T, class... A>
NodePtr<T> make_node(A&&... arguments) {
  return c10::make_intrusive<T>(std::forward<A>(arguments)...);
}
#else
template <class T>
using NodePtr = std::shared_ptr<T>;
template <class T, class... A>
NodePtr<T> make_node(A&&... arguments) {
  return NodePtr<T>(new T(std::forward<A>(arguments)...), torch::autograd::deleteNode);
}
#endif

// One argument of forward: its tensors (none for a non-tensor) and how many gradients backward returns for it.
struct Range {
  size_t begin, end, gradients;
};
using Ranges = c10::SmallVector<Range, 4>;

Ranges ranges_of(c10::ArrayRef<Input> inputs);
// All tensors: tensors_of() keeps undefined ones, defined() omits them.
std::vector<at::Tensor> tensors_of(c10::ArrayRef<Input> inputs);
std::vector<at::Tensor> defined(c10::ArrayRef<Input> inputs);
// Turns backward's results, one gradient for each argument, into one for each tensor.
torch::autograd::variable_list by_tensor(const Definition& definition, const Ranges& ranges, Tensors& results);
void refuse_without_jvp(const Definition& definition);
// Calls the function's jvp. `tangents` has one for each tensor; jvp takes one for each argument.
//
// torch turns forward mode off around a jvp, because saved tensors carry tangents. Under the transforms of torch.func
// that would turn it off for the outer levels as well, whose tangents would silently be zero. So there forward mode
// must be on, and the context must give saved tensors as `without_tangent` does.
Tensors call_jvp(
    const Definition& definition, Context& context, const Ranges& ranges, c10::ArrayRef<at::Tensor> tangents);
// Whether transforms of torch.func are active on this thread.
bool has_transforms();
// Under transforms, the saved tensor without its tangent of the level that jvp is called for.
at::Tensor without_tangent(const at::Tensor& saved);

// The base of all contexts.
class ContextBase : public Context {
  friend class ContextOfSaved;  // which may use another context's state

 public:
  ~ContextBase();

  // Call after forward, for the inputs that it changed in place.
  void bump_versions(const std::string& name, c10::ArrayRef<Input> inputs) const;

  void forget_marks() noexcept {
    dirty_.clear();
    non_differentiable_.clear();
  }

  void mark_dirty(const at::Tensor& input) override;
  void mark_non_differentiable(const at::Tensor& output) override;

 protected:
  void* state_of(const StateType& type) override;
  void drop_state() noexcept;
  // A copy of the state, empty if there is none. Raises if its type allows none.
  StateParts state_parts(const std::string& name) const;
  // Sets the state to a copy; no type stands for no state.
  void set_state(const StateType* type, StateParts parts);
  // Two backward passes may run at once. A node's `mutex_` keeps one from freeing the saved tensors while the other
  // unpacks them.
  static std::unique_lock<std::mutex> locked(std::mutex& mutex);

  // Owned until forward ends, because the address of a dead tensor may be reused.
  std::vector<at::Tensor> dirty_, non_differentiable_;
  const StateType* state_type_ = nullptr;

 private:
  std::mutex state_mutex_;
  void* state_ = nullptr;
};

// The context of a forward without a graph. No backward follows, so nothing is kept.
class ContextWithoutGraph final : public ContextBase {
 public:
  at::Tensor saved_tensor(int64_t index) override;
  size_t saved_tensors() override {
    return 0;
  }
  bool needs_input_grad(int64_t) override {
    return false;
  }
  void set_materialize_grads(bool) override {}

 protected:
  void save(const at::Tensor* const*, size_t, bool) override {}
};

// The context of a backward or jvp whose saved tensors others have kept.
class ContextOfSaved final : public ContextBase {
 public:
  // `needs`: whether each tensor argument needs a gradient.
  ContextOfSaved(std::string name, const Ranges& ranges, std::vector<at::Tensor> saved, std::vector<bool> needs)
      : name_(std::move(name)), ranges_(ranges), saved_(std::move(saved)), needs_(std::move(needs)) {}

  // The state is shared with another context, or a copy.
  void share_state(ContextBase& other) {
    states_ = &other;
  }
  using ContextBase::set_state;

  at::Tensor saved_tensor(int64_t index) override;
  size_t saved_tensors() override {
    return saved_.size();
  }
  bool needs_input_grad(int64_t argument) override;
  void set_materialize_grads(bool) override {}

 protected:
  void save(const at::Tensor* const*, size_t, bool) override;
  void* state_of(const StateType& type) override;

 private:
  std::string name_;
  const Ranges& ranges_;
  std::vector<at::Tensor> saved_;
  std::vector<bool> needs_;
  ContextBase* states_ = nullptr;
};

class FunctionNode final : public torch::autograd::Node, public ContextBase {
 public:
  FunctionNode(std::shared_ptr<const Definition> definition, c10::ArrayRef<Input> inputs);

  // Call after forward: makes `outputs` results of this node, and keeps saved tensors.
  void finish(const NodePtr<Node>& self, c10::ArrayRef<Input> inputs, Tensors& outputs);
  // The same if an input has a tangent: outputs get one too, and a graph only if `has_graph`.
  void finish_with_tangents(const NodePtr<Node>& self, c10::ArrayRef<Input> inputs, Tensors& outputs, bool has_graph);

  // Lets go of what forward has noted. Outputs are among it, and they own this node once they have their edges.
  void end_forward() noexcept;

  std::string name() const override;
  void release_variables() override;
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13
  void release_resources() override;
#endif
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const override;
  torch::autograd::variable_list apply_with_saved(
      const torch::autograd::variable_list& grads, torch::dynamo::autograd::SwapSavedVariables& swap) override;

  at::Tensor saved_tensor(int64_t index) override;
  size_t saved_tensors() override;
  bool needs_input_grad(int64_t argument) override;
  void set_materialize_grads(bool value) override;

 protected:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override;
  void save(const at::Tensor* const* tensors, size_t count, bool for_jvp) override;

 private:
  using Jvp = std::function<torch::autograd::variable_list(
      const torch::autograd::variable_list& inputs, const torch::autograd::variable_list& tangents)>;

  // torch's own processing of outputs that need more than a gradient edge. Without `self` they get no graph.
  NodePtr<Node> wrap(c10::ArrayRef<Input> inputs, Tensors& outputs, const NodePtr<Node>& self, const Jvp& jvp);
  void keep();
  void list_outputs() const;

  std::shared_ptr<const Definition> definition_;
  Ranges ranges_;
  Tensors to_save_;  // until forward ends
  std::unique_ptr<std::vector<at::Tensor>> for_jvp_;
  bool has_saved_ = false;
  std::vector<torch::autograd::SavedVariable> saved_;
  // The metadata of outputs without a gradient, for which torch keeps none.
  std::vector<std::pair<size_t, torch::autograd::VariableInfo>> without_gradient_;
  bool materialize_grads_ = true;
  bool in_forward_ = true;  // also during jvp
  bool in_jvp_ = false;
  // For compiled autograd, which makes inputs of its graph of them.
  mutable std::vector<torch::autograd::VariableInfo> outputs_;
  mutable at::Tensor state_bytes_;
  mutable std::vector<c10::SymInt> state_sizes_;
};

}  // namespace interop::autograd
