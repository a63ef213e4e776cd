// torch's headers for the names that interop/stable/enums.h only declares. In a build that translates Cython, a file
// of this name earlier in the include path includes only the headers that the source needs: see
// interop/cython/declarations.py.
#pragma once

// [ScalarType isSignedType promoteTypes] torch/headeronly/core/ScalarType.h
#include <torch/headeronly/core/ScalarType.h>
// [DeviceType] torch/headeronly/core/DeviceType.h
#include <torch/headeronly/core/DeviceType.h>
// [Layout] torch/headeronly/core/Layout.h
#include <torch/headeronly/core/Layout.h>
// [MemoryFormat] torch/headeronly/core/MemoryFormat.h
#include <torch/headeronly/core/MemoryFormat.h>
// [complex toComplexDouble] torch/headeronly/util/complex.h
#include <torch/headeronly/util/complex.h>
// [AT_FLOAT8_TYPES kFloat8_e5m2 kFloat8_e5m2fnuz kFloat8_e4m3fn kFloat8_e4m3fnuz kFloat8_e8m0fnu]
#include <torch/headeronly/util/Float8_e4m3fn.h>
#include <torch/headeronly/util/Float8_e4m3fnuz.h>
#include <torch/headeronly/util/Float8_e5m2.h>
#include <torch/headeronly/util/Float8_e5m2fnuz.h>
#include <torch/headeronly/util/Float8_e8m0fnu.h>
