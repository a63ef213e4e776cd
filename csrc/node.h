// The node that a function written in Cython leaves in the graph.
#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/autograd/variable_info.h>

#include <torch/headeronly/version.h>

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

// What both kinds of context do.
class ContextBase : public Context {
 public:
  ~ContextBase();

  // After forward: of the inputs that it changed in place.
  void bump_versions(const std::string& name, const std::vector<at::Tensor>& inputs) const;

  void mark_dirty(const at::Tensor& input) override;
  void mark_non_differentiable(const at::Tensor& output) override;

 protected:
  void* state_of(const std::type_info& type, void* (*make)(), void (*destroy)(void*)) override;
  void drop_state() noexcept;
  // Two backward passes may meet. `mutex_` of a node holds off one that frees the saved tensors while another takes
  // them.
  static std::unique_lock<std::mutex> locked(std::mutex& mutex);

  // Owned, until forward has ended: a raw pointer to a tensor that is gone may be that of another one.
  std::vector<at::Tensor> dirty_, non_differentiable_;

 private:
  struct State {
    const std::type_info* type = nullptr;
    void* object = nullptr;
    void (*destroy)(void*) = nullptr;
  };
  std::mutex state_mutex_;
  State state_;
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
  void save(const at::Tensor* const*, size_t) override {}
};

class FunctionNode final : public torch::autograd::Node, public ContextBase {
 public:
  FunctionNode(std::shared_ptr<const Definition> definition, c10::ArrayRef<Input> inputs);

  // After forward: makes `outputs` results of this node, and keeps what was saved.
  void finish(const std::vector<at::Tensor>& inputs, Tensors& outputs);

  std::string name() const override;
  void release_variables() override;
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13
  void release_resources() override;
#endif
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const override;

  at::Tensor saved_tensor(int64_t index) override;
  size_t saved_tensors() override;
  bool needs_input_grad(int64_t argument) override;
  void set_materialize_grads(bool value) override;

 protected:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override;
  void save(const at::Tensor* const* tensors, size_t count) override;

 private:
  // What one argument of forward stands for: its edges, none if it is no tensor, and how many gradients backward
  // returns.
  struct Range {
    size_t begin, end, gradients;
  };

  torch::autograd::variable_list by_edge(Tensors& results) const;

  std::shared_ptr<const Definition> definition_;
  c10::SmallVector<Range, 4> ranges_;
  Tensors to_save_;  // until forward has ended
  bool has_saved_ = false;
  std::vector<torch::autograd::SavedVariable> saved_;
  // Of outputs that have no gradient, for which torch keeps no metadata.
  std::vector<std::pair<size_t, torch::autograd::VariableInfo>> without_gradient_;
  bool materialize_grads_ = true;
  bool in_forward_ = true;
};

}  // namespace interop::autograd
