// The converters, from C++ and from Cython: `from interop.bridges cimport from_numpy, to_numpy`. They are compiled
// once, into interop._bridges; what is here is light, and finds them when they are first called.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>

#include "interop/exceptions.h"

namespace interop::bridges {

// Changes of anything below change the name, and the attribute: see interop/runtime.h.
inline namespace bridges_1 {

// What becomes of memory that is read-only: torch has no read-only tensors.
enum class Readonly { raise, share, copy };

class Bridges {
 public:
  // Where a capsule points to it.
  static constexpr const char* module = "interop._bridges";
  static constexpr const char* attribute = "_bridges_1";

  virtual at::Tensor from_numpy(PyObject* array, Readonly readonly) = 0;
  // New references.
  virtual PyObject* to_numpy(const at::Tensor& tensor, bool force, bool readonly) = 0;

 protected:
  ~Bridges() = default;
};

inline Bridges& find_bridges() {
  PyObject* found_in = PyImport_ImportModule(Bridges::module);
  PyObject* object = found_in ? PyObject_GetAttrString(found_in, Bridges::attribute) : nullptr;
  void* found = object ? PyCapsule_GetPointer(object, Bridges::attribute) : nullptr;
  Py_XDECREF(found_in);
  Py_XDECREF(object);  // the capsule stays in its module, and what it points to stays for good
  if (!found) {
    throw PythonError();
  }
  return *static_cast<Bridges*>(found);
}

inline Bridges& bridges() {
  static Bridges& found = find_bridges();
  return found;
}

// As interop.from_numpy and interop.to_numpy. All of these need the GIL.

inline at::Tensor from_numpy(PyObject* array, Readonly readonly = Readonly::raise) {
  return bridges().from_numpy(array, readonly);
}
inline PyObject* to_numpy(const at::Tensor& tensor, bool force = false, bool readonly = false) {
  return bridges().to_numpy(tensor, force, readonly);
}

}  // namespace bridges_1

}  // namespace interop::bridges
