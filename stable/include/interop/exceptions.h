// The exception handler of a module for many releases of torch. stable/errors.h defines the exceptions.
#pragma once

#include <Python.h>

#include <cstring>
#include <exception>
#include <new>

#include "interop/callback.h"
#include "interop/python_error.h"
#include "interop/stable/errors.h"
#include "interop/stable/shim.h"

namespace interop {

namespace detail {

// torch's C interface reports an error's text but not its class. torch raises each of these texts with one class only.
__attribute__((cold)) inline PyObject* class_of_text(const char* text, const char* end) {
  const auto has = [&](const char* part) {
    const char* found = std::strstr(text, part);
    return found && found < end;
  };
  constexpr const char* of_indices[] = {
      " out of range (expected to be in range of ", ": Expected reduction dim ", "Dimension specified as ",
      "index out of range in self"};
  constexpr const char* not_implemented[] = {"Could not run '", " not implemented for '"};
  if (std::strncmp(text, "linalg.", 7) == 0 && has(" because the input ")) {
    static PyObject* const linalg_error = [] {  // torch.linalg.LinAlgError
      const OwnedRef c_module(PyObject_GetAttrString(stable::torch_module, "_C"));
      PyObject* type = c_module ? PyObject_GetAttrString(c_module.get(), "_LinAlgError") : nullptr;
      PyErr_Clear();
      return type ? type : PyExc_RuntimeError;
    }();
    return linalg_error;
  }
  for (const char* part : of_indices) {
    if (has(part)) {
      return PyExc_IndexError;
    }
  }
  for (const char* part : not_implemented) {
    if (has(part)) {
      return PyExc_NotImplementedError;
    }
  }
  return PyExc_RuntimeError;
}

__attribute__((cold)) inline PyObject* class_of(stable::Kind kind) {
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

// Call it in a catch block, with the GIL held. On return one Python error is set; an error that was already set is
// kept.
__attribute__((noinline, cold)) inline void translate_exception() noexcept {
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
    const char* text = error.what();
    const char* end = text + std::strcspn(text, "\n");  // the dispatcher's messages have fifty more lines
    const OwnedRef line(PyUnicode_DecodeUTF8(text, end - text, "replace"));
    if (line) {
      PyErr_SetObject(detail::class_of_text(text, end), line.get());
    }
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "C++ code threw something that is not a std::exception");
  }
}

}  // namespace interop
