// Does a function written in Cython fit the schema of an operator?
#pragma once

#include <ATen/core/function_schema.h>

#include <string>
#include <vector>

namespace interop::signature {

// In words, the first thing in which `got` differs from what is wanted, or "". `what` they are: "argument", "result".
std::string difference(
    const std::vector<c10::Argument>& wanted, const std::vector<c10::Argument>& got, const char* what);

// How the type of an argument is written in a schema.
std::string type_of(const c10::Argument& argument);

}  // namespace interop::signature
