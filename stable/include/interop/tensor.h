// The Python object behind a tensor, and the way back: as the header of this name that is for one release of torch.
#pragma once

#include "c10/core/Scalar.h"
#include "interop/exceptions.h"
#include "interop/stable/python_call.h"
#include "interop/stable/tensor.h"

namespace interop {

// The tensor of an object that is_tensor(), borrowed where that can be.
inline at::Tensor tensor_of(PyObject* object) {
  if (stable::borrows) {
    return at::Tensor(reinterpret_cast<interop_THPVariable*>(object)->cdata);
  }
  return stable::official(object);
}

using stable::number_in;

}  // namespace interop
