// Python errors that travel through our C++ code.
#pragma once

#include <Python.h>

#include <exception>
#include <string>
#include <type_traits>

#include "interop/owned_ref.h"

namespace interop {

// Thrown by our own functions after they have set the Python error.
struct PythonError : std::exception {
  const char* what() const noexcept override {
    return "a Python exception is set";
  }
};

// Returns the result of a Python C API function. Throws PythonError if it is null, or if it is -1 with an error set.
template <class T>
T* checked(T* result) {
  if (result == nullptr) [[unlikely]] {
    throw PythonError();
  }
  return result;
}
template <class T>
  requires std::is_arithmetic_v<T>
T checked(T result) {
  if (result == static_cast<T>(-1) && PyErr_Occurred()) [[unlikely]] {
    throw PythonError();
  }
  return result;
}

// Throws a new error; the arguments are those of PyErr_Format().
template <class... A>
[[noreturn]] void raise_error(PyObject* type, const char* format, A... arguments) {
  PyErr_Format(type, format, arguments...);
  throw PythonError();
}

// The name of an object's type, with its module unless it is a builtin: numpy.bool.
inline std::string type_name(PyObject* object) {
#ifdef Py_LIMITED_API
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  std::string name;
  for (const char* attribute : {"__module__", "__name__"}) {
    const OwnedRef value(PyObject_GetAttrString(type, attribute));
    const char* text = value ? PyUnicode_AsUTF8AndSize(value.get(), nullptr) : nullptr;
    PyErr_Clear();
    if (text && std::string(text) != "builtins") {
      name += (name.empty() ? "" : ".") + std::string(text);
    }
  }
  return name;
#else
  return Py_TYPE(object)->tp_name;
#endif
}

}  // namespace interop
