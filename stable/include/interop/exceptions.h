// The one exception handler of a module for many releases: see stable/errors.h for what is thrown.
#pragma once

#include <Python.h>

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "interop/callback.h"
#include "interop/python_error.h"
#include "interop/stable/errors.h"
#include "interop/stable/shim.h"

namespace interop {

namespace detail {

// torch's C interface hands on an error's text and not its class. These texts torch raises with one class only.
inline PyObject* class_of_text(std::string_view text) {
  static const std::pair<std::string_view, PyObject*> known[] = {
      {" out of range (expected to be in range of ", PyExc_IndexError},
      {": Expected reduction dim ", PyExc_IndexError},
      {"Dimension specified as ", PyExc_IndexError},
      {"index out of range in self", PyExc_IndexError},
      {"Could not run '", PyExc_NotImplementedError},
      {" not implemented for '", PyExc_NotImplementedError},
  };
  if (text.starts_with("linalg.") && text.find(" because the input ") != text.npos) {
    static PyObject* const linalg_error = [] {  // torch.linalg.LinAlgError
      const OwnedRef c_module(PyObject_GetAttrString(stable::torch_module, "_C"));
      PyObject* type = c_module ? PyObject_GetAttrString(c_module.get(), "_LinAlgError") : nullptr;
      PyErr_Clear();
      return type ? type : PyExc_RuntimeError;
    }();
    return linalg_error;
  }
  for (const auto& [part, type] : known) {
    if (text.find(part) != text.npos) {
      return type;
    }
  }
  return PyExc_RuntimeError;
}

inline PyObject* class_of(stable::Kind kind) {
  switch (kind) {
    case stable::Kind::type:
      return PyExc_TypeError;
    case stable::Kind::value:
      return PyExc_ValueError;
    case stable::Kind::index:
      return PyExc_IndexError;
    case stable::Kind::not_implemented:
      return PyExc_NotImplementedError;
    default:
      return PyExc_RuntimeError;
  }
}

}  // namespace detail

// Call it in a catch block, with the GIL. Leaves exactly one Python error set. One that was set before survives.
inline void translate_exception() noexcept {
  if (PyErr_Occurred()) {
    return;
  }
  try {
    throw;
  } catch (Raised& raised) {
    raised.restore();
  } catch (const stable::Error& error) {
    PyErr_SetString(detail::class_of(error.kind()), error.what());
  } catch (const stable::ShimError& error) {
    const std::string_view text = error.what();
    const std::string line(text.substr(0, text.find('\n')));  // the dispatcher's go on with fifty more
    PyErr_SetString(detail::class_of_text(line), line.c_str());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "C++ code threw something that is not a std::exception");
  }
}

}  // namespace interop
