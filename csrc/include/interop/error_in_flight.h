// Python code that runs while an exception may be on its way.
#pragma once

#include <Python.h>

namespace interop {

// Keeps the error that is set, if any, from the Python code in its scope. Needs the GIL.
class ErrorInFlight {
 public:
  ErrorInFlight() noexcept {
    if (PyErr_Occurred()) {
      PyErr_Fetch(&type_, &value_, &traceback_);
    }
  }
  ~ErrorInFlight() {
    if (type_) {
      PyErr_Restore(type_, value_, traceback_);
    }
  }
  ErrorInFlight(const ErrorInFlight&) = delete;
  ErrorInFlight& operator=(const ErrorInFlight&) = delete;

 private:
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* traceback_ = nullptr;
};

}  // namespace interop
