// Gets the at::Tensor of a Python torch.Tensor, and the torch.Tensor of an at::Tensor.
//
// This repeats the few declarations of torch/csrc/autograd/python_variable.h that we use, because that header pulls
// in pybind11: it costs 8 to 9 s of g++, and ATen/core/Tensor.h costs 1 s. csrc/layout.cpp includes both and asserts
// that they agree.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>

#include <utility>

#include "interop/exceptions.h"

// Exported by libtorch_python.
extern PyObject* THPVariableClass;  // torch.Tensor
PyObject* THPVariable_Wrap(const at::TensorBase& var);
PyObject* THPVariable_Wrap(at::TensorBase&& var);

namespace interop {

struct THPVariable {
  PyObject_HEAD
  at::Tensor cdata;
  PyObject* backward_hooks;
  PyObject* post_accumulate_grad_hooks;
};

// Whether obj really is a torch.Tensor in C. isinstance() is no proof: a class can give a false __class__, and its
// metaclass can have an __instancecheck__, and the memory behind such an object is not a THPVariable.
inline bool is_tensor(PyObject* obj) noexcept {
  return THPVariableClass != nullptr && PyObject_TypeCheck(obj, reinterpret_cast<PyTypeObject*>(THPVariableClass));
}

// The at::Tensor of an object that has passed is_tensor(), borrowed.
inline const at::Tensor& tensor_of(PyObject* obj) noexcept {
  return reinterpret_cast<const THPVariable*>(obj)->cdata;
}

// The number in a tensor of one element.
inline at::Scalar number_in(const at::Tensor& tensor) {
  return tensor.item();
}

// The at::Tensor of a Python tensor, owned. Raises TypeError for everything else, including None.
inline at::Tensor unpack(PyObject* obj) {
  if (!is_tensor(obj)) {
    raise_error(
        PyExc_TypeError, "argument 'obj' must be a torch.Tensor, got %.200s; make one with torch.as_tensor(obj) first",
        Py_TYPE(obj)->tp_name);
  }
  return reinterpret_cast<THPVariable*>(obj)->cdata;
}

// A new reference to the torch.Tensor of an at::Tensor: the object that it already has (a Parameter, a subclass), or
// a new one. None for an undefined tensor. Needs the GIL.
inline PyObject* wrap(const at::TensorBase& tensor) {
  return checked(THPVariable_Wrap(tensor));
}

// The same for a tensor that is not needed any more, without incrementing and decrementing its reference count.
inline PyObject* wrap(at::Tensor&& tensor) {
  return checked(THPVariable_Wrap(std::move(tensor)));
}

}  // namespace interop

// Cython names the object struct of an extension type without a namespace.
using interop_THPVariable = interop::THPVariable;
