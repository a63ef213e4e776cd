// Tensors and the CUDA array interface, version 3.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>

#include "interop/bridges.h"

namespace interop::bridges {

at::Tensor tensor_of_cuda_array(PyObject* object, OnReadonly on_readonly);

// A new reference to an object with the attribute __cuda_array_interface__.
PyObject* cuda_array_of_tensor(const at::Tensor& tensor, bool read_only);

// To be called once, when the module is imported. -1, and an error is set, if it fails.
int ready_cuda_array() noexcept;

}  // namespace interop::bridges
