// Python's torch.ops, whose cache of operators outlives an operator when its module is executed again.
#pragma once

#include <Python.h>

#include <string>

#include "interop/owned_ref.h"

namespace interop {

// Removes the attribute of torch.ops.NAMESPACE, its name in the list there, and the signature that torch.fx has cached.
// torch.library does the same from torch 2.13 on; before, a call through the cache calls an operator that is gone.
// Clears errors, so none may be set.
inline void forget_in_python(const std::string& operator_name) {
  const size_t colons = operator_name.find("::");
  const std::string in = operator_name.substr(0, colons);
  const std::string name = operator_name.substr(colons + 2, operator_name.find('.', colons) - colons - 2);
  const OwnedRef torch(PyImport_ImportModule("torch"));
  const OwnedRef ops(torch ? PyObject_GetAttrString(torch.get(), "ops") : nullptr);
  const OwnedRef namespaces(ops ? PyObject_GetAttrString(ops.get(), "__dict__") : nullptr);  // the cache
  PyObject* found = namespaces ? PyDict_GetItemString(namespaces.get(), in.c_str()) : nullptr;
  const OwnedRef attributes(found ? PyObject_GetAttrString(found, "__dict__") : nullptr);
  if (attributes && PyDict_GetItemString(attributes.get(), name.c_str()) &&
      PyObject_SetAttrString(found, name.c_str(), nullptr) == 0) {
    const OwnedRef names(PyObject_GetAttrString(found, "_dir"));
    const OwnedRef removed(names ? PyObject_CallMethod(names.get(), "remove", "s", name.c_str()) : nullptr);
  }
  PyErr_Clear();
  const OwnedRef schemas(PyImport_ImportModule("torch.fx.operator_schemas"));  // torch has imported it
  const OwnedRef signatures(schemas ? PyObject_GetAttrString(schemas.get(), "_SCHEMA_TO_SIGNATURE_CACHE") : nullptr);
  const size_t dot = operator_name.find('.', colons);
  const std::string overload = dot == std::string::npos ? "" : operator_name.substr(dot + 1);
  const OwnedRef signature(
      signatures
          ? PyObject_CallMethod(
                signatures.get(), "pop", "(ss)O", operator_name.substr(0, dot).c_str(), overload.c_str(), Py_None)
          : nullptr);
  PyErr_Clear();
}

}  // namespace interop
