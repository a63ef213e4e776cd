// The one Bridges there is, and what interop/_bridges.pyx calls. See interop/bridges.h.
#include "interop/bridges.h"

#include <c10/util/SmallVector.h>

#include <string_view>

#include "buffer.h"
#include "exporter.h"
#include "interop/python_types.h"
#include "interop/tensor.h"
#include "numpy.h"
#include "owner_object.h"
#include "protocol.h"
#include "python.h"

namespace interop::bridges {

namespace {

class Compiled final : public Bridges {
 public:
  at::Tensor from_numpy(PyObject* array, Readonly readonly) override {
    return tensor_of_array(array, readonly);
  }
  PyObject* to_numpy(const at::Tensor& tensor, bool force, bool readonly) override {
    return array_of_tensor(tensor, force, readonly);
  }
  PyObject* as_memoryview(const at::Tensor& tensor, bool readonly) override {
    return memoryview_of_tensor(tensor, readonly);
  }
  at::Tensor from_buffer(PyObject* exporter, const BufferView& view, Readonly readonly) override {
    return tensor_of_buffer(exporter, view, readonly);
  }
};

// Runs `convert`, and turns what it throws into a Python error and null.
template <class F>
PyObject* guarded(F convert) noexcept {
  try {
    return convert();
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}

Readonly readonly_of(PyObject* text) {
  static PyObject* const raise = PyUnicode_InternFromString("raise");
  if (text == raise) [[likely]] {
    return Readonly::raise;
  }
  const char* characters = PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
  const std::string_view word = characters ? characters : "";
  if (word == "raise" || word == "share" || word == "copy") {
    return word == "raise" ? Readonly::raise : word == "share" ? Readonly::share : Readonly::copy;
  }
  PyErr_Format(PyExc_ValueError, "argument 'readonly' must be 'raise', 'share' or 'copy', got %.200R", text);
  throw PythonError();
}

int64_t integer_of(PyObject* object, const char* argument, const char* accepted) {
  const long long value = PyIndex_Check(object) ? PyLong_AsLongLong(object) : -1;
  if (!PyIndex_Check(object)) {
    PyErr_Format(PyExc_TypeError, "argument '%s' must be %s, got %.200s", argument, accepted, Py_TYPE(object)->tp_name);
  }
  if (PyErr_Occurred()) {
    throw PythonError();
  }
  return value;
}

c10::SmallVector<int64_t, 8> shape_of(PyObject* object) {
  constexpr const char* accepted = "a sequence of integers, or one";
  if (PyIndex_Check(object)) {
    return {integer_of(object, "shape", accepted)};
  }
  PyObject* sequence = PySequence_Fast(object, "argument 'shape' must be a sequence of integers, or one");
  if (!sequence) {
    throw PythonError();
  }
  c10::SmallVector<int64_t, 8> shape;
  try {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i) {
      shape.push_back(integer_of(PySequence_Fast_GET_ITEM(sequence, i), "shape", accepted));
    }
  } catch (...) {
    Py_DECREF(sequence);
    throw;
  }
  Py_DECREF(sequence);
  return shape;
}

const at::Tensor& tensor_of(PyObject* object) {
  if (!is_tensor(object)) [[unlikely]] {
    PyErr_Format(
        PyExc_TypeError,
        "argument 'tensor' must be a torch.Tensor, got %.200s; make one with torch.as_tensor(tensor)",
        Py_TYPE(object)->tp_name);
    throw PythonError();
  }
  return reinterpret_cast<THPVariable*>(object)->cdata;
}

}  // namespace

namespace python {

PyObject* from_numpy(PyObject* array, PyObject* readonly) noexcept {
  return guarded([&] { return wrap(tensor_of_array(array, readonly_of(readonly))); });
}

PyObject* to_numpy(PyObject* tensor, bool force, bool readonly) noexcept {
  return guarded([&] { return array_of_tensor(tensor_of(tensor), force, readonly); });
}

PyObject* from_buffer(
    PyObject* exporter, PyObject* dtype, PyObject* shape, PyObject* offset, PyObject* readonly) noexcept {
  return guarded([&] {
    BufferView view;
    if (dtype != Py_None) {
      if (!is_dtype(dtype)) {
        PyErr_Format(
            PyExc_TypeError, "argument 'dtype' must be a torch.dtype or None, got %.200s", Py_TYPE(dtype)->tp_name);
        throw PythonError();
      }
      view.dtype = dtype_of(dtype);
    }
    const auto sizes = shape == Py_None ? c10::SmallVector<int64_t, 8>() : shape_of(shape);
    view.has_shape = shape != Py_None;
    view.shape = sizes;
    view.offset = integer_of(offset, "offset", "an integer");
    return wrap(tensor_of_buffer(exporter, view, readonly_of(readonly)));
  });
}

PyObject* as_memoryview(PyObject* tensor, bool readonly) noexcept {
  return guarded([&] { return memoryview_of_tensor(tensor_of(tensor), readonly); });
}

PyObject* tensor_buffer_type() noexcept {
  return Py_XNewRef(reinterpret_cast<PyObject*>(ready_tensor_buffer()));
}

int enable_protocol(bool enable) noexcept {
  return bridges::enable_protocol(enable);
}

bool protocol_is_enabled() noexcept {
  return bridges::protocol_is_enabled();
}

PyObject* make_capsule() noexcept {
  static Compiled compiled;
  if (ready_owner_object() < 0 || ready_buffer_owner() < 0) {
    return nullptr;
  }
  return PyCapsule_New(static_cast<Bridges*>(&compiled), Bridges::attribute, nullptr);
}

}  // namespace python

}  // namespace interop::bridges
