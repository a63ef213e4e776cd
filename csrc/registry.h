// Who has registered what, so that a module that is loaded anew replaces what it registered.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <mutex>
#include <string>

#include "interop/runtime.h"

namespace interop::registry {

// Holds off other threads while it lives. The functions below want one.
class Lock {
 public:
  Lock();

 private:
  std::unique_lock<std::mutex> lock_;
};

// Before a module registers: what an older build of it registered is taken back.
void begin(const Module& module);

// Notes a registration of `module`. The key is empty for the definition of the operator.
void add(
    const Module& module, const std::string& operator_name, const std::string& key, c10::RegistrationHandleRAII handle);

// The module that has registered this, or nullptr.
const std::string* owner(const std::string& operator_name, const std::string& key);

}  // namespace interop::registry
