// Tensors and NumPy's arrays over the same memory.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>

#include "interop/bridges.h"

namespace interop::bridges {

at::Tensor tensor_of_array(PyObject* array, Readonly readonly);
PyObject* array_of_tensor(const at::Tensor& tensor, bool force, bool read_only);

}  // namespace interop::bridges
