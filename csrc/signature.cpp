#include "signature.h"

#include <ATen/core/ivalue.h>

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <string_view>

namespace interop::signature {

namespace {

// The spelling of a type in a schema and in a cdef function.
struct TypeNames {
  std::string_view schema;
  const char* cython;
  bool by_reference = false;
};

constexpr TypeNames TYPE_NAMES[] = {
    {"Tensor", "at.Tensor", true},
    {"int", "int64_t"},
    {"SymInt", "at.SymInt"},
    {"float", "double"},
    {"bool", "cbool"},
    {"Scalar", "at.Scalar", true},
    {"str", "string", true},
    {"ScalarType", "at.ScalarType"},
    {"Device", "at.Device"},
    {"Layout", "at.Layout"},
    {"MemoryFormat", "at.MemoryFormat"},
};

// Those that do not follow from the above.
constexpr TypeNames SPECIAL_NAMES[] = {
    {"bool", "bint, and a whole number beside it int64_t"},
    {"int[]", "at.IntArrayRef"},
    {"SymInt[]", "at.SymIntArrayRef"},
    {"Generator?", "at.Generator"},
    {"Generator", "at.Generator, and write Generator? in the schema"},
    {"complex", "const at.Scalar&, and write Scalar in the schema"},
};

std::string type_of(const c10::Type& type) {
  if (const auto optional = type.cast<c10::OptionalType>()) {
    return type_of(*optional->getElementType()) + "?";
  }
  if (const auto list = type.cast<c10::ListType>()) {
    return type_of(*list->getElementType()) + "[]";
  }
  switch (type.kind()) {
    case c10::TypeKind::NumberType:
      return "Scalar";
    case c10::TypeKind::SymIntType:
      return "SymInt";  // it prints as int
    default:
      return type.annotation_str();
  }
}

// The same type with int for SymInt.
std::string fixed(std::string type) {
  return type.replace(0, type.find_first_of("?[") == std::string::npos ? type.size() : type.find_first_of("?["), "int");
}

std::string in_cython(const std::string& type) {
  for (const TypeNames& names : SPECIAL_NAMES) {
    if (type == names.schema) {
      return std::string("; declare it ") + names.cython;
    }
  }
  const std::string_view element = std::string_view(type).substr(0, type.find_first_of("?["));
  for (const TypeNames& names : TYPE_NAMES) {
    if (element == names.schema) {
      std::string cython = names.cython;
      for (const char form : type.substr(element.size())) {
        if (form != ']') {
          cython = (form == '?' ? "optional[" : "vector[") + cython + "]";
        }
      }
      const bool is_list = cython.find("vector[") != std::string::npos;
      return "; declare it " + (is_list || names.by_reference ? "const " + cython + "&" : cython);
    }
  }
  return "";
}

}  // namespace

std::string type_of(const c10::Argument& argument) {
  // Only real types distinguish int64_t from SymInt, and int from ScalarType; their fake types are equal.
  return type_of(*argument.real_type());
}

std::string difference(
    const std::vector<c10::Argument>& wanted,
    const std::vector<c10::Argument>& got,
    const char* what,
    const char* who) {
  if (wanted.size() != got.size()) {
    return c10::str(
        "the schema has ", wanted.size(), " ", what, wanted.size() == 1 ? "" : "s", ", and the ", who, " ", got.size());
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (*wanted[i].type() != *got[i].type()) {
      const std::string type = type_of(wanted[i]);
      const std::string name = wanted[i].name().empty() ? "" : " '" + wanted[i].name() + "'";
      return c10::str(
          what, " ", i + 1, name, " is ", type, " in the schema, and ", type_of(got[i]), " in the ", who,
          in_cython(type));
    }
  }
  return "";
}

std::vector<size_t> numbers_for_symbols(
    const std::vector<c10::Argument>& wanted, const std::vector<c10::Argument>& got) {
  const auto may_be_symbolic = [](const c10::Argument& argument) { return type_of(argument).starts_with("SymInt"); };
  std::vector<size_t> found;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (may_be_symbolic(wanted[i]) && !may_be_symbolic(got[i])) {
      found.push_back(i);
    }
  }
  return found;
}

void refuse_symbols(
    const std::string& who,
    const std::vector<c10::Argument>& wanted,
    c10::ArrayRef<size_t> numbers,
    c10::ArrayRef<c10::IValue> values) {
  const auto is_symbolic = [](const c10::SymInt& size) { return !size.maybe_as_int(); };
  for (const size_t i : numbers) {
    const c10::IValue& value = values[i];
    const bool found = value.isSymInt() ? is_symbolic(value.toSymInt()) : value.isList() && [&] {
      const auto list = value.toListRef();
      return std::any_of(list.begin(), list.end(), [&](const c10::IValue& one) {
        return one.isSymInt() && is_symbolic(one.toSymInt());
      });
    }();
    TORCH_CHECK(
        !found, who, ": argument ", i + 1, " '", wanted[i].name(), "' is symbolic here, ", value,
        ": torch.compile or torch.export is tracing for any size, and a number would recompile for each size",
        in_cython(type_of(wanted[i])), ", or write ", fixed(type_of(wanted[i])), " in the schema");
  }
}

}  // namespace interop::signature
