#include "signature.h"

#include <c10/util/StringUtil.h>

namespace interop::signature {

namespace {

// How a type is written in a schema, and in a cdef function.
struct TypeNames {
  const char* schema;
  const char* cython;
};

constexpr TypeNames TYPE_NAMES[] = {
    {"Tensor", "const at.Tensor&"},
    {"Tensor?", "const optional[at.Tensor]&"},
    {"Tensor[]", "const vector[at.Tensor]&"},
    {"int", "int64_t"},
    {"SymInt", "int64_t"},
    {"int?", "optional[int64_t]"},
    {"int[]", "at.IntArrayRef"},
    {"SymInt[]", "at.IntArrayRef"},
    {"float", "double"},
    {"float?", "optional[double]"},
    {"int[]?", "optional[vector[int64_t]]"},
    {"float[]", "const vector[double]&"},
    {"float[]?", "optional[vector[double]]"},
    {"bool", "bint, and a whole number beside it int64_t"},
    {"bool?", "optional[cbool]"},
    {"Scalar", "const at.Scalar&"},
    {"Scalar?", "optional[at.Scalar]"},
    {"str", "const string&"},
    {"ScalarType", "at.ScalarType"},
    {"ScalarType?", "optional[at.ScalarType]"},
    {"Device", "at.Device"},
    {"Device?", "optional[at.Device]"},
};

std::string type_of(const c10::Type& type) {
  if (const auto optional = type.cast<c10::OptionalType>()) {
    return type_of(*optional->getElementType()) + "?";
  }
  if (const auto list = type.cast<c10::ListType>()) {
    return type_of(*list->getElementType()) + "[]";
  }
  return type.kind() == c10::TypeKind::NumberType ? "Scalar" : type.annotation_str();
}

std::string in_cython(const std::string& type) {
  for (const TypeNames& names : TYPE_NAMES) {
    if (type == names.schema) {
      return std::string("; declare it ") + names.cython;
    }
  }
  return "";
}

}  // namespace

std::string type_of(const c10::Argument& argument) {
  // Fake types are those as which int64_t and SymInt, int and ScalarType differ.
  return type_of(*argument.real_type());
}

std::string difference(
    const std::vector<c10::Argument>& wanted, const std::vector<c10::Argument>& got, const char* what) {
  if (wanted.size() != got.size()) {
    return c10::str(
        "the schema has ", wanted.size(), " ", what, wanted.size() == 1 ? "" : "s", ", and the kernel ", got.size());
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (*wanted[i].type() != *got[i].type()) {
      const std::string type = type_of(wanted[i]);
      const std::string name = wanted[i].name().empty() ? "" : " '" + wanted[i].name() + "'";
      return c10::str(
          what, " ", i + 1, name, " is ", type, " in the schema, and ", type_of(got[i]), " in the kernel",
          in_cython(type));
    }
  }
  return "";
}

}  // namespace interop::signature
