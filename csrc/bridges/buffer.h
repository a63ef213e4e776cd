// Tensors over the memory of whatever exports a buffer.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>

#include "interop/bridges.h"

namespace interop::bridges {

at::Tensor tensor_of_buffer(PyObject* exporter, const BufferView& wanted, OnReadonly on_readonly);

// To be called once, when the module is imported. -1, and an error is set, if it fails.
int ready_buffer_owner() noexcept;

}  // namespace interop::bridges
