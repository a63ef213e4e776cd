// Converts Python objects to the values that ATen's functions take, for arguments whose type Cython leaves open.
#pragma once

#include <Python.h>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/SmallVector.h>

#include <string>
#include <string_view>

#include "interop/complex_scalar.h"
#include "interop/exceptions.h"
#include "interop/free_threading.h"
#include "interop/gil.h"
#include "interop/owned_ref.h"
#include "interop/python_types.h"
#include "interop/tensor.h"

namespace interop {

// The function and the argument that a message is about.
struct Argument {
  const char* function;
  const char* name;
};

// The cost of an impossible conversion. A sum that includes it exceeds every other cost.
inline constexpr int impossible = 1000;

namespace python {

[[noreturn]] inline void refuse(PyObject* obj, Argument argument, const char* accepted) {
  raise_error(
      PyExc_TypeError, "%s(): argument '%s' must be %s, got %.200s", argument.function, argument.name, accepted,
      type_name(obj).c_str());
}

inline void require(bool fits, PyObject* obj, Argument argument, const char* accepted) {
  if (!fits) [[unlikely]] {
    refuse(obj, argument, accepted);
  }
}

// Python takes NumPy's numbers as indices or floats, but NumPy's bools as neither.
inline bool is_truth_value(PyObject* obj) noexcept {
  return PyBool_Check(obj) || type_name(obj) == "numpy.bool";
}

// numpy.float32 and numpy.complex64 are not subclasses of Python's types.
inline bool is_numpy_number(PyObject* obj) noexcept {
  return !PySequence_Check(obj) && PyNumber_Check(obj) && type_name(obj).starts_with("numpy.");
}

// Not every object with __float__: torch also rejects a Decimal, which would lose digits.
inline bool is_number(PyObject* obj) noexcept {
  return PyFloat_Check(obj) || PyLong_Check(obj) || PyComplex_Check(obj) || is_truth_value(obj) ||
         is_numpy_number(obj) || (PyIndex_Check(obj) && !is_tensor(obj) && !PySequence_Check(obj));
}

[[noreturn]] inline void refuse_size(PyObject* value, Argument argument, const char* accepted) {
  const OwnedRef digits(PyNumber_ToBase(value, 10));
  if (!digits) {
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) {  // of the limit for digits
      throw PythonError();
    }
    PyErr_Clear();
    raise_error(
        PyExc_OverflowError, "%s(): argument '%s' must be %s, got an int of thousands of digits", argument.function,
        argument.name, accepted);
  }
  const char* rest = PyUnicode_GetLength(digits.get()) > 50 ? "..." : "";
  raise_error(
      PyExc_OverflowError, "%s(): argument '%s' must be %s, got %.50S%s", argument.function, argument.name, accepted,
      digits.get(), rest);
}

inline int64_t to_integer(PyObject* obj, Argument argument) {
  require(PyIndex_Check(obj) && !PyBool_Check(obj), obj, argument, "an int");
  const OwnedRef index(PyNumber_Index(obj));
  if (!index) {
    // With several elements, for example. The errors of other classes are their own.
    if ((is_tensor(obj) || type_name(obj) == "numpy.ndarray") && PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      refuse(obj, argument, "an int");
    }
    throw PythonError();
  }
  int overflow = 0;
  const long long value = checked(PyLong_AsLongLongAndOverflow(index.get(), &overflow));
  if (overflow != 0) {
    refuse_size(index.get(), argument, "an int from -2**63 to 2**63 - 1");
  }
  return value;
}

inline double to_double(PyObject* obj, Argument argument) {
  require(is_number(obj) && !PyComplex_Check(obj), obj, argument, "a float");
  return checked(PyFloat_AsDouble(obj));
}

inline bool to_bool(PyObject* obj, Argument argument) {
  require(is_truth_value(obj), obj, argument, "a bool");
  return PyObject_IsTrue(obj) == 1;
}

// torch takes a tensor as a number only if nothing is lost.
inline bool is_number_in_a_tensor(PyObject* obj) {
  if (!is_tensor(obj)) {
    return false;
  }
  const at::Tensor tensor = unpack(obj);
  return tensor.dim() == 0 && !tensor.requires_grad();
}

inline at::Scalar to_scalar(PyObject* obj, Argument argument) {
  if (is_truth_value(obj)) {
    return at::Scalar(PyObject_IsTrue(obj) == 1);
  }
  if (PyFloat_Check(obj)) {
    return at::Scalar(PyFloat_AsDouble(obj));
  }
  if (PyComplex_Check(obj)) {
    return complex_scalar(PyComplex_RealAsDouble(obj), PyComplex_ImagAsDouble(obj));
  }
  if (is_number_in_a_tensor(obj)) {
    return number_in(unpack(obj));
  }
  require(!is_tensor(obj), obj, argument, "a number, or a tensor without dimensions that does not require grad");
  if (PyIndex_Check(obj) && !PySequence_Check(obj)) {
    const OwnedRef index(checked(PyNumber_Index(obj)));
    int overflow = 0;
    const long long value = checked(PyLong_AsLongLongAndOverflow(index.get(), &overflow));
    if (overflow == 0) {
      return at::Scalar(static_cast<int64_t>(value));
    }
    const unsigned long long as_unsigned = PyLong_AsUnsignedLongLong(index.get());
    if (PyErr_Occurred()) {
      PyErr_Clear();
      refuse_size(index.get(), argument, "a number from -2**63 to 2**64 - 1");
    }
    return at::Scalar(static_cast<uint64_t>(as_unsigned));
  }
  require(is_numpy_number(obj), obj, argument, "a number");
  if (PyObject_HasAttrString(obj, "__complex__")) {  // float() of it would drop the imaginary part
    const OwnedRef value(checked(PyObject_CallMethod(obj, "__complex__", nullptr)));
    const double real = checked(PyComplex_RealAsDouble(value.get()));
    return complex_scalar(real, PyComplex_ImagAsDouble(value.get()));
  }
  return at::Scalar(to_double(obj, argument));
}

inline bool is_text(PyObject* obj) noexcept {
  return PyUnicode_Check(obj) || PyBytes_Check(obj);
}

inline bool is_dtype_like(PyObject* obj) noexcept {
  return is_dtype(obj) || obj == reinterpret_cast<PyObject*>(&PyFloat_Type) ||
         obj == reinterpret_cast<PyObject*>(&PyLong_Type) || obj == reinterpret_cast<PyObject*>(&PyBool_Type) ||
         obj == reinterpret_cast<PyObject*>(&PyComplex_Type);
}

// A torch.dtype, or a Python type that stands for one, as in torch.zeros(2, dtype=float).
inline at::ScalarType to_dtype(PyObject* obj, Argument argument) {
  if (is_dtype(obj)) {
    return dtype_of(obj);
  }
  require(is_dtype_like(obj), obj, argument, "a torch.dtype");
  if (obj == reinterpret_cast<PyObject*>(&PyBool_Type)) {
    return at::kBool;
  }
  if (obj == reinterpret_cast<PyObject*>(&PyLong_Type)) {
    return at::kLong;
  }
  return obj == reinterpret_cast<PyObject*>(&PyFloat_Type) ? at::kDouble : at::kComplexDouble;
}

// Borrowed from the object.
inline std::string_view to_string(PyObject* obj, Argument argument) {
  Py_ssize_t length = 0;
  if (PyBytes_Check(obj)) {
    return {PyBytes_AsString(obj), static_cast<size_t>(PyBytes_Size(obj))};
  }
  require(PyUnicode_Check(obj), obj, argument, "a str or bytes");
  const char* text = checked(PyUnicode_AsUTF8AndSize(obj, &length));
  return {text, static_cast<size_t>(length)};
}

inline bool is_device_like(PyObject* obj) noexcept {
  return is_device(obj) || is_text(obj);
}

inline at::Device to_device(PyObject* obj, Argument argument) {
  require(is_device_like(obj), obj, argument, "a torch.device or its name");
  return is_device(obj) ? device_of(obj) : at::Device(std::string(to_string(obj, argument)));
}

inline at::Layout to_layout(PyObject* obj, Argument argument) {
  require(is_layout(obj), obj, argument, "a torch.layout");
  return layout_of(obj);
}

inline at::MemoryFormat to_memory_format(PyObject* obj, Argument argument) {
  require(is_memory_format(obj), obj, argument, "a torch.memory_format");
  return memory_format_of(obj);
}

inline at::Generator to_generator(PyObject* obj, Argument argument) {
  require(is_generator(obj), obj, argument, "a torch.Generator");
  return generator_of(obj);
}

inline bool is_options(PyObject* obj) noexcept {
  return obj == Py_None || is_dtype_like(obj) || is_layout(obj) || is_memory_format(obj) || is_device_like(obj);
}

inline at::TensorOptions to_options(PyObject* obj, Argument argument) {
  require(is_options(obj), obj, argument, "a torch.dtype, torch.device, torch.layout or torch.memory_format");
  if (obj == Py_None) {
    return at::TensorOptions();  // all defaults, as in torch
  }
  if (is_dtype_like(obj)) {
    return at::TensorOptions(to_dtype(obj, argument));
  }
  if (is_layout(obj)) {
    return at::TensorOptions(layout_of(obj));
  }
  if (is_memory_format(obj)) {
    return at::TensorOptions(memory_format_of(obj));
  }
  return at::TensorOptions(to_device(obj, argument));
}

// Whether torch would take obj as a sequence: not if it is text or a tensor.
inline bool is_list(PyObject* obj) noexcept {
  return PyTuple_Check(obj) || PyList_Check(obj) ||
         (PySequence_Check(obj) && !is_text(obj) && !PyByteArray_Check(obj) && !is_tensor(obj));
}

// The first element; null if obj is empty, or is neither a list nor a tuple.
inline SharedRef first_of(PyObject* obj) noexcept {
  if (PyList_Check(obj)) {
    return list_item(obj, 0);
  }
  return shared_ref(PyTuple_Check(obj) && PyTuple_Size(obj) > 0 ? PyTuple_GetItem(obj, 0) : nullptr);
}

// The elements of obj, each converted by `read(element, argument)`.
template <class T, class Read>
c10::SmallVector<T, 6> to_list(PyObject* obj, Argument argument, const char* accepted, Read read) {
  require(is_list(obj), obj, argument, accepted);
  const OwnedRef items(checked(PySequence_Tuple(obj)));  // code called by `read`, or another thread, may change a list
  c10::SmallVector<T, 6> values;
  for (Py_ssize_t i = 0; i < PyTuple_Size(items.get()); ++i) {
    values.push_back(read(PyTuple_GetItem(items.get(), i), argument));
  }
  return values;
}

}  // namespace python
}  // namespace interop
