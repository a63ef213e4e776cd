// Who has registered what, so that a module that is executed anew replaces what it registered. Any thread may call,
// with the GIL where there is one.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

#include "interop/runtime.h"

namespace interop::registry {

// Before a module registers something: what an earlier execution of a module of this name registered is taken back.
void begin(const Module& module);

// Notes a registration of `module`. The key is empty for the definition of the operator.
void add(
    const Module& module, const std::string& operator_name, const std::string& key, c10::RegistrationHandleRAII handle);

// The module that has registered this, or nullptr.
const std::string* owner(const std::string& operator_name, const std::string& key);

}  // namespace interop::registry
