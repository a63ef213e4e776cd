// The exception handler of a module for many releases of torch. stable/errors.h defines the exceptions.
#pragma once

#include <Python.h>

#include <cstring>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "interop/callback.h"
#include "interop/error_text.h"
#include "interop/python_error.h"
#include "interop/stable/errors.h"
#include "interop/stable/shim.h"

namespace interop {

namespace detail {

// The class by its path in the module torch, or RuntimeError if torch has none.
__attribute__((cold)) inline PyObject* class_in_torch(const char* module, const char* name) {
  const OwnedRef found(PyObject_GetAttrString(stable::torch_module, module));
  PyObject* type = found ? PyObject_GetAttrString(found.get(), name) : nullptr;  // torch keeps it
  Py_XDECREF(type);
  PyErr_Clear();
  return type ? type : PyExc_RuntimeError;
}

// torch's C interface reports an error's text but not its class. torch raises each of these texts with one class only,
// apart from that of an index out of bounds: there the operator decides.
__attribute__((cold)) inline PyObject* class_of_text(std::string_view text, std::string_view function) {
  const auto has = [&](const auto& parts) {
    for (const std::string_view part : parts) {
      if (text.find(part) != text.npos) {
        return true;
      }
    }
    return false;
  };
  constexpr std::string_view of_indices[] = {
      " out of range (expected to be in range of ",
      ": Expected reduction dim -1 or 0 for scalar but got ",
      " to have non-zero size.",
      "argmax(): Expected reduction dim ",
      "argmin(): Expected reduction dim ",
      "Dimension specified as ",
      "index out of range in self",
      "invalid index of a 0-dim tensor",
      "out of range: tried to access index ",
      "select(): index ",
      "shape mismatch: indexing tensors could not be broadcast together ",
      "tensors used as indices must be ",
      "The shape of the mask ",
      "too many indices for tensor of dimension "};
  constexpr std::string_view not_implemented[] = {
      "Could not run '", "There were no tensor arguments to this function ", " not implemented for '",
      " raises unimplemented by default"};
  constexpr std::string_view of_values[] = {"torch.cat(): expected a non-empty list of Tensors"};
  if (text == "std::bad_alloc" || text == "std::bad_array_new_length") {
    return PyExc_MemoryError;
  }
  if (text.find(" out of memory. Tried to allocate ") != text.npos) {
    return class_in_torch("_C", "OutOfMemoryError");
  }
  if (text.find("could not be completed because the input ") != text.npos ||
      (text.find("linalg.") <= std::strlen("torch.") && text.find(" because the input ") != text.npos)) {
    return class_in_torch("_C", "_LinAlgError");
  }
  const bool outside = text.find(" is out of bounds for dimension ") != text.npos;
  if (has(of_indices) || (text.starts_with("Target ") && text.ends_with(" is out of bounds.")) ||
      (outside && (function == "aten::index" || function == "aten::_unsafe_index" ||
                   function.starts_with("aten::index_put") || function.starts_with("aten::_index_put_impl") ||
                   function.starts_with("aten::index_copy") || function.starts_with("aten::index_fill")))) {
    return PyExc_IndexError;
  }
  return has(not_implemented) ? PyExc_NotImplementedError : has(of_values) ? PyExc_ValueError : PyExc_RuntimeError;
}

// Sets the error of a failed call. The text of a Python error, which a kernel or a mode raised, begins with the name of
// its class. pybind11 appends the traceback.
__attribute__((cold)) inline void set_error_of_shim(std::string_view text, std::string_view function) {
  const std::pair<std::string_view, PyObject*> of_python[] = {
      {"IndexError: ", PyExc_IndexError},     {"KeyError: ", PyExc_KeyError},
      {"MemoryError: ", PyExc_MemoryError},   {"NotImplementedError: ", PyExc_NotImplementedError},
      {"RuntimeError: ", PyExc_RuntimeError}, {"TypeError: ", PyExc_TypeError},
      {"ValueError: ", PyExc_ValueError}};
  PyObject* type = nullptr;
  for (const auto& [prefix, named] : of_python) {
    if (text.starts_with(prefix)) {
      type = named;
      text = text.substr(prefix.size());
      text = text.substr(0, text.find("\n\nAt:\n"));
      break;
    }
  }
  text = without_list_of_kernels(text);
  type = type ? type : class_of_text(text, function);
  const OwnedRef message(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  if (message) {
    PyErr_SetObject(type, message.get());
  }
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
    case stable::Kind::linalg:
      return class_in_torch("_C", "_LinAlgError");
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
    detail::set_error_of_shim(error.what(), error.function());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "C++ code threw something that is not a std::exception");
  }
}

}  // namespace interop
