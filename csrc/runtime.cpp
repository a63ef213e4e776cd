// The one Runtime there is: see interop/runtime.h.
#include "interop/runtime.h"

#include <torch/csrc/Exceptions.h>

#include "apply.h"
#include "dispatcher.h"
#include "interop/dispatcher_kernel.h"

namespace interop {

namespace {

class RuntimeImpl final : public Runtime {
 public:
  void define(
      const Module& module,
      const std::string& name,
      const std::string& schema,
      const std::vector<at::Tag>& tags) override {
    dispatcher::define(module, name, schema, tags);
  }
  void impl(
      const Module& module,
      const std::string& name,
      const std::string& key,
      std::vector<dispatcher::Candidate> ways) override {
    dispatcher::impl(module, name, key, std::move(ways));
  }
  void apply(
      const std::shared_ptr<const autograd::Definition>& definition,
      c10::ArrayRef<autograd::Input> inputs,
      c10::function_ref<void(autograd::Context&)> forward,
      autograd::Tensors& outputs) override {
    autograd::apply(definition, inputs, forward, outputs);
  }
  void register_autograd(
      const Module& module,
      const std::string& name,
      const autograd::Backward& backward,
      std::vector<autograd::SetupContext> ways) override {
    dispatcher::register_autograd(module, name, backward, std::move(ways));
  }
  void register_autocast(
      const Module& module, const std::string& name, const std::string& device, at::ScalarType dtype) override {
    dispatcher::register_autocast(module, name, device, dtype);
  }
  void call(const std::string& name, std::vector<c10::IValue>& stack) override {
    dispatcher::call(name, stack);
  }
  std::exception_ptr take_python_error() override {
    python_error error;
    error.persist();
    return std::make_exception_ptr(std::move(error));
  }
};

}  // namespace

// For interop/_core.pyx; a new reference.
PyObject* make_runtime_capsule() {
  static RuntimeImpl implementation;
  return PyCapsule_New(static_cast<Runtime*>(&implementation), Runtime::attribute, nullptr);
}

}  // namespace interop
