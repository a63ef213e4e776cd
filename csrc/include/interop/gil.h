// The GIL, for a scope of C++ that may run without it, and the other way round.
#pragma once

#include <Python.h>
#include <unistd.h>

namespace interop {

// Where the GIL is held already, this costs a few nanoseconds.
//
// When the interpreter has ended, Python up to 3.13 ends a thread that asks for the GIL, by unwinding its stack: code
// that is noexcept, or that catches everything as Cython's does, turns that into an abort of the process. Such a thread
// waits here for the end of the process instead, as it does in Python 3.14.
class Gil {
 public:
  Gil() noexcept : state_(ensure()) {}
  ~Gil() {
    PyGILState_Release(state_);
  }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;

 private:
  static PyGILState_STATE ensure() noexcept {
    try {
      return PyGILState_Ensure();
    } catch (...) {
      for (;;) {
        pause();
      }
    }
  }

  PyGILState_STATE state_;
};

// Gives up the GIL where it is held. Whoever waits for other threads that may want it must not keep it.
class NoGil {
 public:
  NoGil() noexcept : state_(is_held() ? PyEval_SaveThread() : nullptr) {}
  ~NoGil() {
    if (state_) {
      PyEval_RestoreThread(state_);
    }
  }
  NoGil(const NoGil&) = delete;
  NoGil& operator=(const NoGil&) = delete;

 private:
  static bool is_held() noexcept {
#ifdef Py_LIMITED_API  // which has no PyGILState_Check(), but this says what the state was
    const PyGILState_STATE before = PyGILState_Ensure();
    PyGILState_Release(before);
    return before == PyGILState_LOCKED;
#else
    return PyGILState_Check();
#endif
  }

  PyThreadState* state_;
};

}  // namespace interop
