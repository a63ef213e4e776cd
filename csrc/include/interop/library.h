// torch.library for functions written in Cython.
#pragma once

#include <string>
#include <vector>

#include "interop/dispatcher_kernel.h"
#include "interop/operator.h"
#include "interop/runtime.h"
#include "interop/setup_context.h"
#include "interop/vmap.h"

namespace interop {

// Registers a module's operators, kernels and gradients. Needs the GIL. Cython code uses it as `interop_library`.
class Library {
 public:
  Library(const char* name, PyObject* module) : module_{name, module} {}

  template <class... Tags>
  void define(const std::string& name, const std::string& schema, Tags... tags) const {
    runtime().define(module_, name, schema, {tags...});
  }

  template <class F>
  void impl(const std::string& name, const std::string& key, F* kernel) const {
    runtime().impl(module_, name, key, dispatcher::candidates<F>(kernel));
  }

  template <class B>
  void register_autograd(const std::string& name, B* backward) const {
    runtime().register_autograd(module_, name, autograd::Gradient<B>::make(backward), {}, {});
  }
  template <class B, class S>
  void register_autograd(const std::string& name, B* backward, S* setup_context) const {
    runtime().register_autograd(
        module_, name, autograd::Gradient<B>::make(backward), {}, autograd::setups<S>(setup_context));
  }
  template <class B, class S, class J>
  void register_autograd(const std::string& name, B* backward, S* setup_context, J* jvp) const {
    runtime().register_autograd(
        module_, name, autograd::Gradient<B>::make(backward), autograd::Gradient<J>::make(jvp),
        autograd::setups<S>(setup_context));
  }

  template <class F>
  void register_vmap(const std::string& name, F* rule) const {
    runtime().register_vmap(module_, name, vmap::rules<F>(rule));
  }

  void register_autocast(const std::string& name, const std::string& device, at::ScalarType dtype) const {
    runtime().register_autocast(module_, name, device, dtype);
  }
  void register_autocast(const std::string& name, const std::string& device) const {
    register_autocast(name, device, at::ScalarType::Undefined);
  }

 private:
  Module module_;
};

}  // namespace interop

// Cython defines these two, the module's dotted name and its object, after the headers that it includes.
#define interop_library ::interop::Library(__Pyx_MODULE_NAME, __pyx_m)
