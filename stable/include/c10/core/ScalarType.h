// Element types: the enum is torch's own, from its headers that need no library.
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include <string>
#include <utility>

#include "interop/stable/errors.h"

namespace c10 {

#define INTEROP_CONSTANT(_, name) constexpr ScalarType k##name = ScalarType::name;
AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(INTEROP_CONSTANT)
#undef INTEROP_CONSTANT

inline size_t elementSize(ScalarType type) {
  switch (type) {
#define INTEROP_SIZE(cpp, name) \
  case ScalarType::name:        \
    return sizeof(cpp);
    AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(INTEROP_SIZE)
#undef INTEROP_SIZE
    default:
      interop::stable::raise(interop::stable::Kind::value, "elementSize: ", toString(type), " has no size");
  }
}

inline bool isComplexType(ScalarType type) {
  return type == ScalarType::ComplexHalf || type == ScalarType::ComplexFloat || type == ScalarType::ComplexDouble;
}

inline bool isFloatingType(ScalarType type) {
  switch (type) {
    case ScalarType::Half:
    case ScalarType::BFloat16:
    case ScalarType::Float:
    case ScalarType::Double:
    case ScalarType::Float8_e5m2:
    case ScalarType::Float8_e4m3fn:
    case ScalarType::Float8_e5m2fnuz:
    case ScalarType::Float8_e4m3fnuz:
    case ScalarType::Float8_e8m0fnu:
      return true;
    default:
      return false;
  }
}

inline bool isIntegralType(ScalarType type, bool include_bool) {
  switch (type) {
    case ScalarType::Byte:
    case ScalarType::Char:
    case ScalarType::Short:
    case ScalarType::Int:
    case ScalarType::Long:
    case ScalarType::UInt16:
    case ScalarType::UInt32:
    case ScalarType::UInt64:
      return true;
    default:
      return include_bool && type == ScalarType::Bool;
  }
}

// What Python calls the dtype, and an older name or "": as in torch's own headers.
inline std::pair<std::string, std::string> getDtypeNames(ScalarType type) {
  switch (type) {
#define INTEROP_NAME(name, python) \
  case ScalarType::name:           \
    return {python, ""};
    INTEROP_NAME(Byte, "uint8")
    INTEROP_NAME(Char, "int8")
    INTEROP_NAME(Short, "int16")
    INTEROP_NAME(Int, "int32")
    INTEROP_NAME(Long, "int64")
    INTEROP_NAME(Half, "float16")
    INTEROP_NAME(Float, "float32")
    INTEROP_NAME(Double, "float64")
    INTEROP_NAME(ComplexHalf, "complex32")
    INTEROP_NAME(ComplexFloat, "complex64")
    INTEROP_NAME(ComplexDouble, "complex128")
    INTEROP_NAME(Bool, "bool")
    INTEROP_NAME(QInt8, "qint8")
    INTEROP_NAME(QUInt8, "quint8")
    INTEROP_NAME(QInt32, "qint32")
    INTEROP_NAME(BFloat16, "bfloat16")
    INTEROP_NAME(UInt16, "uint16")
    INTEROP_NAME(UInt32, "uint32")
    INTEROP_NAME(UInt64, "uint64")
    INTEROP_NAME(Float8_e5m2, "float8_e5m2")
    INTEROP_NAME(Float8_e4m3fn, "float8_e4m3fn")
    INTEROP_NAME(Float8_e5m2fnuz, "float8_e5m2fnuz")
    INTEROP_NAME(Float8_e4m3fnuz, "float8_e4m3fnuz")
    INTEROP_NAME(Float8_e8m0fnu, "float8_e8m0fnu")
#undef INTEROP_NAME
    default:
      return {toString(type), ""};
  }
}

}  // namespace c10

namespace at {
using namespace c10;  // as torch has it
}
