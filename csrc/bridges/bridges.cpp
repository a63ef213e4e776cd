// The one Bridges there is, and what interop/_bridges.pyx calls. See interop/bridges.h.
#include "interop/bridges.h"

#include <string_view>

#include "interop/tensor.h"
#include "numpy.h"
#include "owner_object.h"
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

PyObject* make_capsule() noexcept {
  static Compiled compiled;
  if (ready_owner_object() < 0) {
    return nullptr;
  }
  return PyCapsule_New(static_cast<Bridges*>(&compiled), Bridges::attribute, nullptr);
}

}  // namespace python

}  // namespace interop::bridges
