// The functions behind interop::Runtime that deal with the dispatcher.
#pragma once

#include "interop/runtime.h"
#include "interop/setup_context.h"

namespace interop::dispatcher {

void define(const Module& module, const std::string& name, const std::string& schema, const std::vector<at::Tag>& tags);
void impl(const Module& module, const std::string& name, const std::string& key, std::vector<Candidate> ways);
void register_autograd(
    const Module& module,
    const std::string& name,
    const autograd::Backward& backward,
    std::vector<autograd::SetupContext> ways);
void register_autocast(const Module& module, const std::string& name, const std::string& device, at::ScalarType dtype);
void call(const std::string& name, std::vector<c10::IValue>& stack);

}  // namespace interop::dispatcher
