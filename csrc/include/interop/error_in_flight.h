// Saves and restores the current Python error. No other code fetches or restores errors.
#pragma once

#include <Python.h>

#include <utility>

#include "interop/owned_ref.h"

// CPython and its Limited API have functions for the exception itself from 3.12 on.
#ifdef Py_LIMITED_API
#define INTEROP_RAISED_EXCEPTION (Py_LIMITED_API + 0 >= 0x030C0000)
#else
#define INTEROP_RAISED_EXCEPTION (PY_VERSION_HEX >= 0x030C0000)
#endif

namespace interop {

// Clears the current error and returns the exception with its traceback, or null if there is none. Needs the GIL.
inline OwnedRef take_error() noexcept {
#if INTEROP_RAISED_EXCEPTION
  return OwnedRef(PyErr_GetRaisedException());
#else
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const OwnedRef owned_type(type), owned_traceback(traceback);
  if (traceback) {
    PyException_SetTraceback(value, traceback);
  }
  return OwnedRef(value);
#endif
}

// Sets an exception from take_error(), in place of the current error. Needs the GIL.
inline void set_error(OwnedRef exception) noexcept {
#if INTEROP_RAISED_EXCEPTION
  PyErr_SetRaisedException(exception.release());
#else
  PyObject* value = exception.release();
  PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(value))), value, PyException_GetTraceback(value));
#endif
}

// Hides the current error, if any, from Python code in its scope, and restores it at the end. Needs the GIL.
class ErrorInFlight {
 public:
  ErrorInFlight() noexcept : exception_(PyErr_Occurred() ? take_error() : OwnedRef()) {}
  ~ErrorInFlight() {
    if (exception_) {
      set_error(std::move(exception_));
    }
  }
  ErrorInFlight(const ErrorInFlight&) = delete;
  ErrorInFlight& operator=(const ErrorInFlight&) = delete;

  // The exception, borrowed; null if there is none.
  PyObject* get() const noexcept {
    return exception_.get();
  }

 private:
  OwnedRef exception_;
};

}  // namespace interop
