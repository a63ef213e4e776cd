// The headers that modules over `cimport torch` and `cimport ATen` include, to be precompiled.
//
// Nearly every module includes nearly all of them, and compiles to the same code with and without this header. Those of
// loops and gradients cost a module that does not use them nothing that can be measured. A header that includes
// ATen/core/ivalue.h does not belong here: g++ would instantiate its templates in each module, for 1 s.
#pragma once

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN  // as Cython does before it includes Python.h
#endif
#include <Python.h>
// Python.h must come first; the order of the others is free.
#include <compile.h>
#include <frameobject.h>
#include <pythread.h>
#include <structmember.h>
#include <traceback.h>

#include <ATen/core/Tensor.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/ArrayRef.h>

#include <atomic>
#include <cmath>
#include <complex>
#include <ios>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "interop/autograd.h"
#include "interop/device.h"
#include "interop/exceptions.h"
#include "interop/generator.h"
#include "interop/guards.h"
#include "interop/lists.h"
#include "interop/manual.h"
#include "interop/operators.h"
#include "interop/reduction.h"
#include "interop/scalar.h"
#include "interop/storage.h"
#include "interop/tensor.h"
#include "interop/tuple.h"
