// A tensor's Python object, and the tensor of a Python object, like the header of this name for one release of torch.
#pragma once

#include "c10/core/Scalar.h"
#include "interop/exceptions.h"
#include "interop/stable/python_call.h"
#include "interop/stable/tensor.h"

namespace interop {

// The tensor of an object that passed is_tensor(), borrowed if possible.
inline at::Tensor tensor_of(PyObject* object) {
  if (stable::borrows) {
    return reinterpret_cast<interop_THPVariable*>(object)->cdata;
  }
  return stable::official(object);
}

using stable::number_in;

}  // namespace interop
