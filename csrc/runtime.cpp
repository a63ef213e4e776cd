// The part of Runtime that does not use the dispatcher, and the capsule in which modules find it.
#include <torch/csrc/Exceptions.h>

#include "apply.h"
#include "cxx_library.h"
#include "dispatcher.h"

namespace interop {

std::exception_ptr RuntimeImpl::take_python_error() {
  python_error error;
  error.persist();
  return std::make_exception_ptr(std::move(error));
}

void RuntimeImpl::apply(
    const std::shared_ptr<const autograd::Definition>& definition,
    c10::ArrayRef<autograd::Input> inputs,
    c10::function_ref<void(autograd::Context&, const at::Tensor*)> forward,
    autograd::Tensors& outputs) {
  autograd::apply(definition, inputs, forward, outputs);
}

// For interop/_core.pyx; a new reference.
PyObject* make_runtime_capsule() {
  if (!require_cxx_library_of_torch()) {
    return nullptr;
  }
  static RuntimeImpl implementation;
  return PyCapsule_New(static_cast<Runtime*>(&implementation), Runtime::attribute, nullptr);
}

}  // namespace interop
