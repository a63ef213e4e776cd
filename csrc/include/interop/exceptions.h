// The one exception handler: what C++ threw becomes the Python exception that torch itself would raise.
#pragma once

#include <Python.h>

#include <c10/util/Exception.h>
#include <torch/csrc/utils/cpp_stacktraces.h>

#include <cstring>
#include <exception>
#include <new>

#include "interop/callback.h"

// Exported by libtorch_python. Its header (torch/csrc/Exceptions.h) costs 4.6 s of g++.
namespace torch {
void translate_exception_to_python(const std::exception_ptr& exception);
}

namespace interop {

// Thrown by our own functions after they have set the Python error.
struct PythonError : std::exception {
  const char* what() const noexcept override {
    return "a Python exception is set";
  }
};

namespace detail {

// Cuts the message of the pending exception after its first line. The dispatcher's messages go on for fifty more, with
// every backend that has the kernel.
inline void keep_first_line() noexcept {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* args =
      value && PyExceptionInstance_Check(value) ? reinterpret_cast<PyBaseExceptionObject*>(value)->args : nullptr;
  if (args && PyTuple_GET_SIZE(args) == 1 && PyUnicode_Check(PyTuple_GET_ITEM(args, 0))) {
    PyObject* message = PyTuple_GET_ITEM(args, 0);
    const Py_ssize_t end = PyUnicode_FindChar(message, '\n', 0, PyUnicode_GET_LENGTH(message), 1);
    PyObject* line = end > 0 ? PyUnicode_Substring(message, 0, end) : nullptr;
    PyObject* shorter = line ? PyTuple_Pack(1, line) : nullptr;
    if (shorter) {
      PyObject_SetAttrString(value, "args", shorter);
    }
    Py_XDECREF(shorter);
    Py_XDECREF(line);
  }
  PyErr_Clear();  // of a failed attempt to shorten: the exception itself is worth more
  PyErr_Restore(type, value, traceback);
}

}  // namespace detail

// Call it in a catch block, with the GIL: `except +translate_exception` in Cython, `catch (...)` in C++. Leaves exactly
// one Python error set. One that was set before survives: it is the cause.
inline void translate_exception() noexcept {
  if (PyErr_Occurred()) {
    return;
  }
  try {
    try {
      throw;
    } catch (Raised& raised) {
      raised.restore();
    } catch (const c10::Error&) {
      torch::translate_exception_to_python(std::current_exception());
      if (!torch::get_cpp_stacktraces_enabled()) {
        detail::keep_first_line();
      }
    } catch (const std::bad_alloc&) {
      PyErr_NoMemory();
    } catch (const std::exception&) {
      torch::translate_exception_to_python(std::current_exception());
    }
  } catch (...) {
  }
  if (!PyErr_Occurred()) {
    PyErr_SetString(PyExc_RuntimeError, "C++ code threw something that is not a std::exception");
  }
}

}  // namespace interop
