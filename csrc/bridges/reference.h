// A reference to a Python object that is dropped unless it is given away.
#pragma once

#include <Python.h>

#include <utility>

namespace interop::bridges {

class Reference {
 public:
  explicit Reference(PyObject* object) noexcept : object_(object) {}
  ~Reference() {
    Py_XDECREF(object_);
  }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  explicit operator bool() const noexcept {
    return object_ != nullptr;
  }
  PyObject* get() const noexcept {
    return object_;
  }
  PyObject* give() noexcept {
    return std::exchange(object_, nullptr);
  }

 private:
  PyObject* object_;
};

}  // namespace interop::bridges
