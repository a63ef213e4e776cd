// NumPy's dtypes for bfloat16 and the 8-bit floats, which the package ml_dtypes adds.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>

#include "interop/bridges/dtypes.h"

namespace interop::bridges {

// The row of a scalar type of ml_dtypes, or null for any other type.
const Dtype* find_ml_dtype(PyObject* type);

// The scalar type of a row with a name, borrowed. TypeError, about `tensor`, if ml_dtypes is not there or lacks it.
PyObject* ml_dtype_type(const Dtype& dtype, const at::Tensor& tensor);

}  // namespace interop::bridges
