// The register of each module's registrations, so that a module that is executed again replaces them. Any thread may
// call, with the GIL if there is one.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

#include "interop/runtime.h"

namespace interop::registry {

// An object whose critical section orders the registrations of several threads: each begin(), and what follows it.
// CPython suspends the section while begin() runs Python, or waits for the dictionary of a module that others write to.
PyObject* section();

// Call before a module registers anything: removes what an earlier execution of a module of this name registered.
void begin(const Module& module);

// Records a registration of `module`. The key is empty for the definition of the operator.
void add(
    const Module& module, const std::string& operator_name, const std::string& key, c10::RegistrationHandleRAII handle);

// The module that has registered this, or nullptr.
const std::string* owner(const std::string& operator_name, const std::string& key);

}  // namespace interop::registry
