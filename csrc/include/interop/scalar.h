// at::Scalar from Cython's types, with one function for each type, because C++ would take True for the int 1.
#pragma once

#include <Python.h>

#include <c10/core/Scalar.h>

#include <cstdint>

#include "interop/complex_scalar.h"
#include "interop/exceptions.h"
#include "interop/owned_ref.h"
#include "interop/tensor.h"

namespace interop {

inline c10::Scalar scalar_of_bool(bool value) noexcept {
  return value;
}
inline c10::Scalar scalar_of_int(int64_t value) noexcept {
  return value;
}
inline c10::Scalar scalar_of_unsigned(uint64_t value) noexcept {
  return value;
}
inline c10::Scalar scalar_of_double(double value) noexcept {
  return value;
}
template <class T>
c10::Scalar scalar_of_complex(const T& value) noexcept {
  return complex_scalar(value.real(), value.imag());
}

// Converts a Python number, with the checks in torch's order: True is a boolean and not an int, though bool is a
// subclass of int. NumPy's integers are accepted too. Needs the GIL.
inline c10::Scalar scalar_of_object(PyObject* value) {
  if (PyBool_Check(value)) {
    return value == Py_True;
  }
  if (PyFloat_Check(value)) {
    return PyFloat_AsDouble(value);
  }
  if (PyComplex_Check(value)) {
    return complex_scalar(PyComplex_RealAsDouble(value), PyComplex_ImagAsDouble(value));
  }
  // Tensors and arrays have __index__ as well, which would silently read them out.
  if (PyLong_Check(value) || (PyIndex_Check(value) && !PySequence_Check(value) && !is_tensor(value))) {
    const OwnedRef number(checked(PyNumber_Index(value)));
    int overflow = 0;
    const long long as_signed = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
    c10::Scalar result = static_cast<int64_t>(as_signed);
    if (overflow > 0) {
      result = static_cast<uint64_t>(PyLong_AsUnsignedLongLong(number.get()));  // raises OverflowError from 2**64 on
    } else if (overflow < 0) {
      PyErr_SetString(PyExc_OverflowError, "argument 'value' must be an int of 64 bits, got one below -2**63");
    }
    if (PyErr_Occurred()) {
      throw PythonError();
    }
    return result;
  }
  raise_error(
      PyExc_TypeError,
      "argument 'value' must be bool, int, float or complex, got %.200s; read a tensor out with .item()",
      type_name(value).c_str());
}

inline bool equal(const c10::Scalar& a, const c10::Scalar& b) {
  if (b.isBoolean()) {
    return a.equal(b.toBool());
  }
  if (b.isComplex()) {
    return a.equal(complex_parts(b));
  }
  if (b.isFloatingPoint()) {
    return a.equal(b.toDouble());
  }
  return b.type() == c10::kUInt64 ? a.equal(b.toUInt64()) : a.equal(b.toLong());
}

}  // namespace interop
