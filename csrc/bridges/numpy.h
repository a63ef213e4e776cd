// Tensors and NumPy's arrays over the same memory.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>

#include "interop/bridges.h"

namespace interop::bridges {

// `argument` is what messages call the array.
at::Tensor tensor_of_array(PyObject* array, OnReadonly on_readonly, const char* argument = "array");

// Whether it is a numpy.ndarray, and not of a subclass.
bool is_array(PyObject* object);

PyObject* array_of_tensor(const at::Tensor& tensor, bool force, bool read_only);

// Raises ValueError for an array with masked elements: its memory would be that without the mask.
void check_unmasked(PyObject* object, const char* argument);

}  // namespace interop::bridges
