// See arguments.h.
#include "arguments.h"

#include <string_view>

#include "interop/tensor.h"

namespace interop::bridges {

Readonly readonly_of(PyObject* text) {
  static PyObject* const raise = PyUnicode_InternFromString("raise");
  if (text == raise) [[likely]] {
    return Readonly::raise;
  }
  const char* characters = PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
  const std::string_view word = characters ? characters : "";
  if (word == "raise" || word == "share" || word == "copy") {
    return word == "raise" ? Readonly::raise : word == "share" ? Readonly::share : Readonly::copy;
  }
  PyErr_Format(PyExc_ValueError, "argument 'readonly' must be 'raise', 'share' or 'copy', got %.200R", text);
  throw PythonError();
}

int64_t integer_of(PyObject* object, const char* argument, const char* accepted) {
  const long long value = PyIndex_Check(object) ? PyLong_AsLongLong(object) : -1;
  if (!PyIndex_Check(object)) {
    PyErr_Format(PyExc_TypeError, "argument '%s' must be %s, got %.200s", argument, accepted, Py_TYPE(object)->tp_name);
  }
  if (PyErr_Occurred()) {
    throw PythonError();
  }
  return value;
}

const at::Tensor& tensor_of(PyObject* object) {
  if (!is_tensor(object)) [[unlikely]] {
    PyErr_Format(
        PyExc_TypeError,
        "argument 'tensor' must be a torch.Tensor, got %.200s; make one with torch.as_tensor(tensor)",
        Py_TYPE(object)->tp_name);
    throw PythonError();
  }
  return reinterpret_cast<THPVariable*>(object)->cdata;
}

}  // namespace interop::bridges
