// The compiled half of registration and autograd. interop._core has the only copy, so modules stay quick to compile,
// and all modules of a process share one register.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <ATen/core/enum_tag.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/SmallVector.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "interop/callback.h"
#include "interop/capsule.h"
#include "interop/gil.h"

namespace c10 {
struct IValue;
}

namespace interop {

namespace dispatcher {
struct Candidate;
}
namespace autograd {
class Context;
struct Backward;
struct Definition;
struct Input;
struct SetupContext;
using Tensors = c10::SmallVector<at::Tensor, 4>;
}  // namespace autograd
namespace vmap {
struct Rule;
}

// Any change below, or of a type that crosses this border, such as vmap::Rule and VmapInfo, must change the namespace's
// name and the attribute: a module must not share inline functions with a module that was built with another version.
inline namespace runtime_6 {

// The module that registers. When executed again, perhaps from another file, it has the same name but another object.
struct Module {
  const char* name;
  PyObject* object;  // borrowed
};

class Runtime {
 public:
  // The capsule that points to the object.
  static constexpr const char* module = "interop._core";
  static constexpr const char* attribute = "_runtime_7";

  virtual void define(
      const Module& module, const std::string& name, const std::string& schema, const std::vector<at::Tag>& tags) = 0;
  virtual void impl(
      const Module& module,
      const std::string& name,
      const std::string& key,
      std::vector<dispatcher::Candidate> ways) = 0;
  // `jvp` may be empty. `ways` is empty if there is no setup_context.
  virtual void register_autograd(
      const Module& module,
      const std::string& name,
      const autograd::Backward& backward,
      const autograd::Backward& jvp,
      std::vector<autograd::SetupContext> ways) = 0;
  virtual void register_vmap(const Module& module, const std::string& name, std::vector<vmap::Rule> ways) = 0;
  virtual void register_autocast(
      const Module& module, const std::string& name, const std::string& device, at::ScalarType dtype) = 0;
  // The stack holds the arguments; trailing ones with defaults may be missing. After the call it holds the results.
  virtual void call(const std::string& name, std::vector<c10::IValue>& stack) = 0;
  // Takes the error that is set, as torch's python_error, whose header costs 4.6 s of g++. Needs the GIL.
  virtual std::exception_ptr take_python_error() = 0;
  // Calls `forward`, which appends to `outputs`, and adds the outputs to the graph. If the second argument of
  // `forward` is not null, it points to tensors that replace those of all inputs.
  virtual void apply(
      const std::shared_ptr<const autograd::Definition>& definition,
      c10::ArrayRef<autograd::Input> inputs,
      c10::function_ref<void(autograd::Context&, const at::Tensor*)> forward,
      autograd::Tensors& outputs) = 0;

 protected:
  ~Runtime() = default;
};

// Works with or without the GIL.
inline Runtime& runtime() {
  return interop::detail::find_once<Runtime>("registers operators or gradients");
}

}  // namespace runtime_6

// Throws the error of `call`, if there is one, as torch's python_error. torch passes it on to its caller in Python.
inline void raise_if_failed(Callback& call) {
  if (call.failed()) [[unlikely]] {
    Gil gil;
    call.take().restore();
    std::rethrow_exception(runtime().take_python_error());
  }
}

}  // namespace interop
