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

// As what a buffer is to be seen, where it is not as what it says.
struct BufferView {
  c10::ScalarType dtype = c10::ScalarType::Undefined;  // that of its format
  bool has_shape = false;
  at::IntArrayRef shape;  // borrowed
  int64_t offset = 0;     // bytes
};

class Bridges {
 public:
  // Where a capsule points to it.
  static constexpr const char* module = "interop._bridges";
  static constexpr const char* attribute = "_bridges_1";

  virtual at::Tensor from_numpy(PyObject* array, Readonly readonly) = 0;
  // The objects are new references.
  virtual PyObject* to_numpy(const at::Tensor& tensor, bool force, bool readonly) = 0;
  virtual PyObject* as_memoryview(const at::Tensor& tensor, bool readonly) = 0;
  virtual at::Tensor from_buffer(PyObject* exporter, const BufferView& view, Readonly readonly) = 0;

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

// As the functions of `interop` with these names. All of them need the GIL.

inline at::Tensor from_numpy(PyObject* array, Readonly readonly = Readonly::raise) {
  return bridges().from_numpy(array, readonly);
}
inline PyObject* to_numpy(const at::Tensor& tensor, bool force = false, bool readonly = false) {
  return bridges().to_numpy(tensor, force, readonly);
}
inline PyObject* as_memoryview(const at::Tensor& tensor, bool readonly = false) {
  return bridges().as_memoryview(tensor, readonly);
}
inline at::Tensor from_buffer(PyObject* exporter, Readonly readonly = Readonly::raise) {
  return bridges().from_buffer(exporter, {}, readonly);
}
inline at::Tensor from_buffer(
    PyObject* exporter,
    c10::ScalarType dtype,
    at::IntArrayRef shape,
    int64_t offset = 0,
    Readonly readonly = Readonly::raise) {
  return bridges().from_buffer(exporter, {dtype, true, shape, offset}, readonly);
}

}  // namespace bridges_1

}  // namespace interop::bridges
