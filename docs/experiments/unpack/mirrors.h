// The objects of numpy.dtype and complex as far as they are read, written down by hand from the headers of NumPy 2 and
// Python. The mirror of torch.Tensor is this toolkit's own, in interop/tensor.h. assertions.h holds them to the
// headers.
#pragma once

#include <Python.h>

#include <cstdint>

namespace mirror {

struct Dtype {
  PyObject_HEAD
  PyTypeObject* scalar_type;
  char kind, code, byte_order, former_flags;
  int number;
  uint64_t flags;
  Py_ssize_t itemsize;
  Py_ssize_t alignment;
};

struct Complex {
  PyObject_HEAD
  double real;
  double imag;
};

}  // namespace mirror

// Cython names the object struct of an extension type without a namespace.
using mirror_Dtype = mirror::Dtype;
using mirror_Complex = mirror::Complex;
