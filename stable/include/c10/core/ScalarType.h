// Element types. Their enum is only declared, unless a source names it: see interop/stable/enumerators.h.
#pragma once

#include <string>
#include <utility>

#include "interop/stable/enumerators.h"
#include "interop/stable/enums.h"
#include "interop/stable/errors.h"

namespace interop::stable {

// The C++ name, the Python name and the size in bytes of an element type.
struct ElementType {
  const char* name;
  const char* python;
  size_t size;
};
inline constexpr ElementType element_types[] = {
#define INTEROP_ELEMENT(name, python, size) {#name, #python, size},
    INTEROP_ELEMENT_TYPES(INTEROP_ELEMENT)
#undef INTEROP_ELEMENT
};
// Null for an unknown number.
inline const ElementType* element_type(c10::ScalarType type) noexcept {
  const auto number = static_cast<size_t>(type);
  return number < numbers::element_types ? &element_types[number] : nullptr;
}

namespace names {

inline constexpr auto kUndefined = static_cast<c10::ScalarType>(numbers::element_types);

inline const char* toString(c10::ScalarType type) noexcept {
  const ElementType* found = element_type(type);
  return found ? found->name : type == kUndefined ? "Undefined" : "UNKNOWN_SCALAR";
}

inline size_t elementSize(c10::ScalarType type) {
  const ElementType* found = element_type(type);
  if (!found) {
    raise(Kind::value, "elementSize: ", names::toString(type), " has no size");
  }
  return found->size;
}

constexpr bool isComplexType(c10::ScalarType type) noexcept {
  return type == kComplexHalf || type == kComplexFloat || type == kComplexDouble || type == kBComplex32;
}

constexpr bool isQIntType(c10::ScalarType type) noexcept {
  return type == kQInt8 || type == kQUInt8 || type == kQInt32 || type == kQUInt4x2 || type == kQUInt2x4;
}

constexpr bool isFloatingType(c10::ScalarType type) noexcept {
  switch (type) {
    case kHalf:
    case kBFloat16:
    case kFloat:
    case kDouble:
    case kFloat8_e5m2:
    case kFloat8_e4m3fn:
    case kFloat8_e5m2fnuz:
    case kFloat8_e4m3fnuz:
    case kFloat8_e8m0fnu:
      return true;
    default:
      return false;
  }
}

constexpr bool isIntegralType(c10::ScalarType type, bool include_bool) noexcept {
  switch (type) {
    case kByte:
    case kChar:
    case kShort:
    case kInt:
    case kLong:
    case kUInt16:
    case kUInt32:
    case kUInt64:
      return true;
    default:
      return include_bool && type == kBool;
  }
}

// The dtype's Python name, and an older name or "", as in torch's own headers.
inline std::pair<std::string, std::string> getDtypeNames(c10::ScalarType type) {
  const ElementType* found = element_type(type);
  return {found ? found->python : names::toString(type), ""};
}

}  // namespace names
}  // namespace interop::stable
