// Compares a function written in Cython with the schema of an operator.
#pragma once

#include <ATen/core/function_schema.h>

#include <string>
#include <vector>

namespace interop::signature {

// Describes the first difference between `got` and `wanted`; "" if there is none. `what` is "argument" or "result", and
// `who` is the function that has `got`.
std::string difference(
    const std::vector<c10::Argument>& wanted,
    const std::vector<c10::Argument>& got,
    const char* what,
    const char* who = "kernel");

// The indices of arguments that are SymInts in the schema, `wanted`, and integers in the function.
std::vector<size_t> numbers_for_symbols(
    const std::vector<c10::Argument>& wanted, const std::vector<c10::Argument>& got);

// Raises if one of these values is symbolic: an integer would be compiled for this size alone. `who` takes it.
void refuse_symbols(
    const std::string& who,
    const std::vector<c10::Argument>& wanted,
    c10::ArrayRef<size_t> numbers,
    c10::ArrayRef<c10::IValue> values);

// The spelling of an argument's type in a schema.
std::string type_of(const c10::Argument& argument);

}  // namespace interop::signature
