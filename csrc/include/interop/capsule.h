// Finds what interop's compiled parts give to modules: a pointer in a capsule, under a name that goes up with each
// change of what it points to.
#pragma once

#include <Python.h>

#include "interop/exceptions.h"
#include "interop/gil.h"

namespace interop::detail {

// With or without the GIL. `use` is what the caller does with it, for the ImportError of a module that was built with
// another torch-interop. What goes wrong in importing `module` is raised as it is.
inline void* find_capsule(const char* module, const char* attribute, const char* use) {
  const Gil gil;
  // Not PyCapsule_Import: that imports no submodules.
  PyObject* found_in = PyImport_ImportModule(module);
  if (!found_in) {
    throw PythonError();
  }
  PyObject* object = PyObject_GetAttrString(found_in, attribute);
  void* found = object ? PyCapsule_GetPointer(object, attribute) : nullptr;
  Py_DECREF(found_in);
  Py_XDECREF(object);  // the capsule stays in its module, and what it points to stays for good
  if (!found) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyErr_Format(
        PyExc_ImportError,
        "this module %s and needs the torch-interop that it was built with (%.200R). Rebuild the module, in its "
        "project: pip install --no-build-isolation --force-reinstall --no-deps .",
        use,
        value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    throw PythonError();
  }
  return found;
}

}  // namespace interop::detail
