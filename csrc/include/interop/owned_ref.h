// An owned reference to a Python object.
#pragma once

#include <Python.h>

#include <utility>

namespace interop {

// Drops its reference unless release() has given it away. It may be null. Needs the GIL to drop a reference.
class OwnedRef {
 public:
  OwnedRef() noexcept = default;
  // Steals a reference.
  explicit OwnedRef(PyObject* object) noexcept : object_(object) {}
  OwnedRef(OwnedRef&& other) noexcept : object_(other.release()) {}
  OwnedRef& operator=(OwnedRef&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~OwnedRef() {
    Py_XDECREF(object_);
  }

  explicit operator bool() const noexcept {
    return object_ != nullptr;
  }
  // Borrowed.
  PyObject* get() const noexcept {
    return object_;
  }
  PyObject* release() noexcept {
    return std::exchange(object_, nullptr);
  }

 private:
  PyObject* object_ = nullptr;
};

}  // namespace interop
