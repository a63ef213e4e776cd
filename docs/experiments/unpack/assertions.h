// Compiling this is the test: the mirrors agree with the real headers. With OLD_TENSOR or OLD_DTYPE, one of them is
// what it was in torch up to 2.9 and in NumPy 1, to see what the compiler says.
#pragma once

#include <Python.h>

#include <numpy/arrayobject.h>
#include <torch/csrc/autograd/python_variable.h>

#include <cstddef>
#include <type_traits>

#include "interop/tensor.h"
#include "mirrors.h"

// offsetof of a class that is not standard-layout is conditionally supported; g++ and clang do support it here.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace mirror {

#ifdef OLD_TENSOR
struct Tensor {
  PyObject_HEAD
  c10::MaybeOwned<at::Tensor> cdata;
  PyObject* backward_hooks;
};
#else
using Tensor = interop::THPVariable;
#endif

#ifdef OLD_DTYPE
struct CheckedDtype {
  PyObject_HEAD
  PyTypeObject* scalar_type;
  char kind, code, byte_order, flags;
  int number;
  int itemsize;
  int alignment;
};
#else
using CheckedDtype = Dtype;
#endif

static_assert(
    std::is_same_v<decltype(Tensor::cdata), decltype(::THPVariable::cdata)>, "torch.Tensor holds another type");
static_assert(offsetof(Tensor, cdata) == offsetof(::THPVariable, cdata), "torch.Tensor");
static_assert(offsetof(Tensor, backward_hooks) == offsetof(::THPVariable, backward_hooks), "torch.Tensor");

static_assert(
    std::is_same_v<decltype(CheckedDtype::itemsize), decltype(_PyArray_DescrNumPy2::elsize)>,
    "numpy.dtype has an itemsize of another type");
static_assert(offsetof(CheckedDtype, number) == offsetof(_PyArray_DescrNumPy2, type_num), "numpy.dtype");
static_assert(offsetof(CheckedDtype, itemsize) == offsetof(_PyArray_DescrNumPy2, elsize), "numpy.dtype");
static_assert(offsetof(CheckedDtype, alignment) == offsetof(_PyArray_DescrNumPy2, alignment), "numpy.dtype");

static_assert(offsetof(Complex, real) == offsetof(PyComplexObject, cval.real), "complex");
static_assert(offsetof(Complex, imag) == offsetof(PyComplexObject, cval.imag), "complex");
static_assert(sizeof(Complex) == sizeof(PyComplexObject), "complex");

}  // namespace mirror
