// The only exception handler: turns a C++ exception into the Python exception that torch itself would raise.
#pragma once

#include <Python.h>

#include <c10/util/Exception.h>
#include <torch/csrc/utils/cpp_stacktraces.h>

#include <exception>
#include <new>
#include <string_view>

#include "interop/callback.h"
#include "interop/error_in_flight.h"
#include "interop/error_text.h"
#include "interop/owned_ref.h"
#include "interop/python_error.h"

// Exported by libtorch_python. Its header (torch/csrc/Exceptions.h) takes g++ 4.6 s.
namespace torch {
void translate_exception_to_python(const std::exception_ptr& exception);
}

namespace interop {

namespace detail {

// Leaves the list of kernels out of the message of the current exception.
inline void shorten_message() noexcept {
  const ErrorInFlight error;  // restores it, even over the error of a failed attempt to shorten it
  PyObject* args = error.get() ? reinterpret_cast<PyBaseExceptionObject*>(error.get())->args : nullptr;
  if (args && PyTuple_GET_SIZE(args) == 1 && PyUnicode_Check(PyTuple_GET_ITEM(args, 0))) {
    Py_ssize_t size = 0;
    const char* utf8 = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(args, 0), &size);
    const std::string_view message(utf8 ? utf8 : "", utf8 ? static_cast<size_t>(size) : 0);
    const std::string_view told = without_list_of_kernels(message);
    if (told.size() < message.size()) {
      const OwnedRef line(PyUnicode_FromStringAndSize(told.data(), static_cast<Py_ssize_t>(told.size())));
      const OwnedRef shorter(line ? PyTuple_Pack(1, line.get()) : nullptr);
      if (shorter) {
        PyObject_SetAttrString(error.get(), "args", shorter.get());
      }
    }
  }
}

}  // namespace detail

// Call it in a catch block, with the GIL: `except +translate_exception` in Cython, `catch (...)` in C++. Leaves
// exactly one Python error set. An earlier error survives, because it is the cause.
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
        detail::shorten_message();
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
