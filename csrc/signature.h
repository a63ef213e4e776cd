// Does a function written in Cython fit the schema of an operator?
#pragma once

#include <ATen/core/function_schema.h>

#include <string>
#include <vector>

namespace interop::signature {

// In words, the first thing in which `got` differs from what is wanted, or "". `what` they are: "argument", "result".
std::string difference(
    const std::vector<c10::Argument>& wanted, const std::vector<c10::Argument>& got, const char* what);

// The arguments that may be symbolic sizes by the schema, `wanted`, and that the function takes as numbers.
std::vector<size_t> numbers_for_symbols(
    const std::vector<c10::Argument>& wanted, const std::vector<c10::Argument>& got);

// Raises if one of these values is a symbol: as a number it would be compiled for this size alone. `who` takes it.
void refuse_symbols(
    const std::string& who,
    const std::vector<c10::Argument>& wanted,
    c10::ArrayRef<size_t> numbers,
    c10::ArrayRef<c10::IValue> values);

// How the type of an argument is written in a schema.
std::string type_of(const c10::Argument& argument);

}  // namespace interop::signature
