// See protocol.h.
//
// The buffer that is exported belongs to a TensorBuffer, which the exporter puts into the view in place of the tensor.
// So buffers are released as they should be when the protocol has been disabled meanwhile.
#include "protocol.h"

#include <Python.h>

#include "exporter.h"
#include "interop/exceptions.h"
#include "interop/tensor.h"

namespace interop::bridges {

namespace {

bool enabled = false;

// What is wrong is a BufferError to those who ask for buffers. NumPy, for one, then tries other ways.
void make_buffer_error() noexcept {
  if (PyErr_ExceptionMatches(PyExc_MemoryError)) {
    return;
  }
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyErr_Format(PyExc_BufferError, "%S", value ? value : Py_None);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

int getbuffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  try {
    return export_tensor(reinterpret_cast<THPVariable*>(self)->cdata, view, flags);
  } catch (...) {
    translate_exception();
    make_buffer_error();
    return -1;
  }
}

#if PY_VERSION_HEX >= 0x030C0000

// From Python 3.12 on, a slot is filled in from the attribute __buffer__ of a class, in all subclasses and in those to
// come. The attribute must be the wrapper that Python itself makes of a slot, or the slot leads through Python code.
// So a type that has the slot is made, and of its attribute one for torch.Tensor.
int set_slots(bool enable) noexcept {
  if (!enable) {
    return PyObject_SetAttrString(THPVariableClass, "__buffer__", nullptr);
  }
  static PyBufferProcs procs = {getbuffer, nullptr};
  static PyTypeObject pattern = {
      .ob_base = {.ob_base = {.ob_refcnt = 1, .ob_type = nullptr}, .ob_size = 0},
      .tp_name = "interop._bridges.Pattern",
      .tp_basicsize = sizeof(PyObject),
      .tp_as_buffer = &procs,
      .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
  };
  if (PyType_Ready(&pattern) < 0) {
    return -1;
  }
  PyObject* wrapper = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&pattern), "__buffer__");
  if (!wrapper) {
    return -1;
  }
  PyObject* ours = PyDescr_NewWrapper(
      reinterpret_cast<PyTypeObject*>(THPVariableClass),
      reinterpret_cast<PyWrapperDescrObject*>(wrapper)->d_base,
      reinterpret_cast<void*>(getbuffer));
  Py_DECREF(wrapper);
  const int result = ours ? PyObject_SetAttrString(THPVariableClass, "__buffer__", ours) : -1;
  Py_XDECREF(ours);
  return result;
}

#else

// A slot is inherited when a class is made, so those that exist are told one by one.
int set_slots(PyTypeObject* type, bool enable) noexcept {
  if (PyBufferProcs* procs = type->tp_as_buffer) {
    if (enable && !procs->bf_getbuffer) {
      procs->bf_getbuffer = getbuffer;
    } else if (!enable && procs->bf_getbuffer == getbuffer) {
      procs->bf_getbuffer = nullptr;
    }
    PyType_Modified(type);
  }
  PyObject* subclasses = PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyType_Type), "__subclasses__", "O", type);
  if (!subclasses) {
    return -1;
  }
  int result = 0;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(subclasses) && result == 0; ++i) {
    result = set_slots(reinterpret_cast<PyTypeObject*>(PyList_GET_ITEM(subclasses, i)), enable);
  }
  Py_DECREF(subclasses);
  return result;
}

int set_slots(bool enable) noexcept {
  return set_slots(reinterpret_cast<PyTypeObject*>(THPVariableClass), enable);
}

#endif

}  // namespace

bool protocol_is_enabled() noexcept {
  return enabled;
}

int enable_protocol(bool enable) noexcept {
  if (enable == enabled) {
    return 0;
  }
  const int result = set_slots(enable);
  enabled = result == 0 ? enable : enabled;
  return result;
}

}  // namespace interop::bridges
