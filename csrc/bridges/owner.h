// Python objects that own the memory of tensors, for interop._bridges alone: see memory.h. A tensor may die on any
// thread, with or without the GIL, while an exception is on its way, and after the interpreter has ended.
#pragma once

#include <Python.h>

#include "interop/error_in_flight.h"
#include "interop/gil.h"

namespace interop::bridges {

// Whether there is an interpreter that objects can be given back to. When it ends, it is too late for other threads to
// ask for the GIL; what they still own is leaked, and the process gives it back to the system.
inline bool interpreter_is_alive() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsInitialized() && !Py_IsFinalizing();
#else
  return Py_IsInitialized() && !_Py_IsFinalizing();
#endif
}

namespace detail {

inline void drop(void* object) noexcept {
  const ErrorInFlight error;  // dropping the last reference runs Python code
  Py_DECREF(static_cast<PyObject*>(object));
}

// The thread that holds the GIL, or null.
inline PyThreadState* running_thread() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked();
#else
  return _PyThreadState_UncheckedGet();
#endif
}

// On a thread of Python's that has given up the GIL, as torch's destructor of a tensor just has: the short way back.
inline void drop_on(PyThreadState* thread, void* object) noexcept {
  try {
    PyEval_RestoreThread(thread);
  } catch (...) {  // the interpreter has ended meanwhile: see Gil
    for (;;) {
      pause();
    }
  }
  drop(object);
  PyEval_SaveThread();
}

}  // namespace detail

// The deleter of a c10::DataPtr whose context is a reference to the Python object that owns the memory.
inline void drop_owner(void* object) noexcept {
  if (!interpreter_is_alive()) {
    return;
  }
  PyThreadState* thread = PyGILState_GetThisThreadState();
  if (thread == nullptr) {
    const Gil gil;
    detail::drop(object);
  } else if (thread == detail::running_thread()) {
    detail::drop(object);
  } else {
    detail::drop_on(thread, object);
  }
}

// The same, for memory that must not be written to. What is made of such a tensor is read-only again.
inline void drop_read_only_owner(void* object) noexcept {
  drop_owner(object);
}

}  // namespace interop::bridges
