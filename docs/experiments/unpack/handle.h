// A tensor of Python as a handle of torch's C shim, whose functions stay the same from release to release.
#pragma once

#include <Python.h>

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/headeronly/version.h>

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 14
// Exported since 2.14; the header that declares it has moved since.
extern "C" int32_t torch_tensor_from_pyobject(void* object, AtenTensorHandle* result);
#define UNPACK_C_FUNCTION "torch_tensor_from_pyobject"
#else
#define UNPACK_C_FUNCTION "torch._C._aoti.unsafe_alloc_void_ptr_from_tensor"
#endif

namespace unpack {

// A new handle, which the caller deletes; null with a Python error. `from_tensor` is the function that older releases
// have in Python: it gives a capsule with the handle.
inline AtenTensorHandle handle_of(PyObject* object, PyObject* from_tensor) {
  AtenTensorHandle handle = nullptr;
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 14
  if (torch_tensor_from_pyobject(object, &handle) != 0 && !PyErr_Occurred()) {
    PyErr_Format(PyExc_TypeError, "expected torch.Tensor, got %.200s", Py_TYPE(object)->tp_name);
  }
#else
  PyObject* capsule = PyObject_CallOneArg(from_tensor, object);
  if (capsule != nullptr) {
    handle = static_cast<AtenTensorHandle>(PyCapsule_GetPointer(capsule, nullptr));
    Py_DECREF(capsule);
  }
#endif
  return handle;
}

}  // namespace unpack
