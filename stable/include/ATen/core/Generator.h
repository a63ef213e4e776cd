// A random number generator, represented by its Python object, because torch's C interface cannot convert between the
// two.
#pragma once

#include <Python.h>

#include <utility>

#include "interop/gil.h"
#include "interop/owned_ref.h"

namespace interop::stable {

class Generator {
 public:
  Generator() noexcept = default;
  // Takes a new reference to the object. Needs the GIL.
  explicit Generator(PyObject* object) noexcept : object_(Py_NewRef(object)) {}
  Generator(const Generator& other) : object_(other.new_reference()) {}
  Generator(Generator&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Generator& operator=(Generator other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Generator() {
    if (object_) {
      const Gil gil;
      Py_DECREF(object_);
    }
  }
  bool defined() const noexcept {
    return object_ != nullptr;
  }
  // Borrowed; null if undefined.
  PyObject* object() const noexcept {
    return object_;
  }

 private:
  PyObject* new_reference() const {
    if (!object_) {
      return nullptr;
    }
    const Gil gil;
    return Py_NewRef(object_);
  }

  PyObject* object_ = nullptr;
};

}  // namespace interop::stable

namespace at {
using Generator = interop::stable::Generator;
}
