// The node that a function written in Cython leaves in the graph.
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

// Torch held nodes by shared_ptr until 2.12.
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

// What one argument of forward stands for: its tensors, none if it is no tensor, and how many gradients backward
// returns for it.
struct Range {
  size_t begin, end, gradients;
};
using Ranges = c10::SmallVector<Range, 4>;

Ranges ranges_of(c10::ArrayRef<Input> inputs);
// All tensors: those that are missing are undefined, or left out.
std::vector<at::Tensor> tensors_of(c10::ArrayRef<Input> inputs);
std::vector<at::Tensor> defined(c10::ArrayRef<Input> inputs);
// What backward returned, one gradient for each argument, as one for each tensor.
torch::autograd::variable_list by_tensor(const Definition& definition, const Ranges& ranges, Tensors& results);
void refuse_without_jvp(const Definition& definition);
// Calls the function's jvp. There is one tangent for each tensor, where jvp takes one for each argument.
Tensors call_jvp(
    const Definition& definition, Context& context, const Ranges& ranges, c10::ArrayRef<at::Tensor> tangents);

// What all kinds of context do.
class ContextBase : public Context {
  friend class ContextOfSaved;  // which may ask another one for its state

 public:
  ~ContextBase();

  // After forward: of the inputs that it changed in place.
  void bump_versions(const std::string& name, const std::vector<at::Tensor>& inputs) const;

  void forget_marks() {
    dirty_.clear();
    non_differentiable_.clear();
  }

  void mark_dirty(const at::Tensor& input) override;
  void mark_non_differentiable(const at::Tensor& output) override;

 protected:
  void* state_of(const StateType& type) override;
  void drop_state() noexcept;
  // The state, if its bytes say all; empty if there is none.
  std::string state_bytes(const std::string& name) const;
  // Two backward passes may meet. `mutex_` of a node holds off one that frees the saved tensors while another takes
  // them.
  static std::unique_lock<std::mutex> locked(std::mutex& mutex);

  // Owned, until forward has ended: a raw pointer to a tensor that is gone may be that of another one.
  std::vector<at::Tensor> dirty_, non_differentiable_;

 private:
  std::mutex state_mutex_;
  const StateType* state_type_ = nullptr;
  void* state_ = nullptr;
};

// Of a forward that leaves no graph: there will be no backward, so nothing is kept.
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

// Of a backward or jvp that is called with tensors which others have kept.
class ContextOfSaved final : public ContextBase {
 public:
  // `needs`: the gradient of each tensor among the arguments.
  ContextOfSaved(std::string name, const Ranges& ranges, std::vector<at::Tensor> saved, std::vector<bool> needs)
      : name_(std::move(name)), ranges_(ranges), saved_(std::move(saved)), needs_(std::move(needs)) {}

  // The state is that of another context, or a copy made of these bytes.
  void share_state(ContextBase& other) {
    states_ = &other;
  }
  void start_with(std::string state) {
    bytes_ = std::move(state);
  }

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
  std::string bytes_;
};

class FunctionNode final : public torch::autograd::Node, public ContextBase {
 public:
  FunctionNode(std::shared_ptr<const Definition> definition, c10::ArrayRef<Input> inputs);

  // After forward: makes `outputs` results of this node, and keeps what was saved. `inputs` are defined.
  void finish(const std::vector<at::Tensor>& inputs, Tensors& outputs);
  // The same if an input has a tangent: outputs have one too, and a graph only if that is wanted.
  void finish_with_tangents(c10::ArrayRef<Input> inputs, Tensors& outputs, bool has_graph);

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

  // torch's own treatment of outputs, for those that need more than a gradient edge. Without `self` they have no graph.
  NodePtr<Node> wrap(
      const std::vector<at::Tensor>& inputs, Tensors& outputs, const NodePtr<Node>& self, const Jvp& jvp);
  void keep(const NodePtr<Node>& self);
  void list_outputs() const;

  std::shared_ptr<const Definition> definition_;
  Ranges ranges_;
  Tensors to_save_;  // until forward has ended
  std::unique_ptr<std::vector<at::Tensor>> for_jvp_;
  bool has_saved_ = false;
  std::vector<torch::autograd::SavedVariable> saved_;
  // Of outputs that have no gradient, for which torch keeps no metadata.
  std::vector<std::pair<size_t, torch::autograd::VariableInfo>> without_gradient_;
  bool materialize_grads_ = true;
  bool in_forward_ = true;  // also in jvp
  bool in_jvp_ = false;
  mutable std::vector<torch::autograd::VariableInfo> outputs_;  // for compiled autograd
};

}  // namespace interop::autograd
