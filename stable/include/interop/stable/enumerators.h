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
