// The only implementation of Runtime: see interop/runtime.h. Members that use the dispatcher are in dispatcher.cpp.
#pragma once

#include "interop/runtime.h"
#include "interop/setup_context.h"
#include "interop/vmap.h"

namespace interop {

class RuntimeImpl final : public Runtime {
 public:
  void define(
      const Module& module,
      const std::string& name,
      const std::string& schema,
      const std::vector<at::Tag>& tags) override;
  void impl(
      const Module& module,
      const std::string& name,
      const std::string& key,
      std::vector<dispatcher::Candidate> ways) override;
  void register_autograd(
      const Module& module,
      const std::string& name,
      const autograd::Backward& backward,
      const autograd::Backward& jvp,
      std::vector<autograd::SetupContext> ways) override;
  void register_vmap(const Module& module, const std::string& name, std::vector<vmap::Rule> ways) override;
  void register_autocast(
      const Module& module, const std::string& name, const std::string& device, at::ScalarType dtype) override;
  void call(const std::string& name, std::vector<c10::IValue>& stack) override;
  std::exception_ptr take_python_error() override;
  void apply(
      const std::shared_ptr<const autograd::Definition>& definition,
      c10::ArrayRef<autograd::Input> inputs,
      c10::function_ref<void(autograd::Context&, const at::Tensor*)> forward,
      autograd::Tensors& outputs) override;
};

}  // namespace interop
