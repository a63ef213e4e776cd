// The Python error that is set, put aside and set again. Nothing else fetches or restores errors.
#pragma once

#include <Python.h>

#include <utility>

#include "interop/owned_ref.h"

// CPython 3.12 has functions for the exception itself; so has the Limited API from there on.
#ifdef Py_LIMITED_API
#define INTEROP_RAISED_EXCEPTION (Py_LIMITED_API + 0 >= 0x030C0000)
#else
#define INTEROP_RAISED_EXCEPTION (PY_VERSION_HEX >= 0x030C0000)
#endif

namespace interop {

// Clears the error that is set and returns the exception, with its traceback; null if none is set. Needs the GIL.
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

// Sets an exception that was taken, in place of the one that is set. Needs the GIL.
inline void set_error(OwnedRef exception) noexcept {
#if INTEROP_RAISED_EXCEPTION
  PyErr_SetRaisedException(exception.release());
#else
  PyObject* value = exception.release();
  PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(value))), value, PyException_GetTraceback(value));
#endif
}

// Keeps the error that is set, if any, from the Python code in its scope. Needs the GIL.
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
