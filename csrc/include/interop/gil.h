// The GIL, for a scope of C++ that may run without it, and the other way round.
#pragma once

#include <Python.h>
#include <unistd.h>

#ifdef Py_LIMITED_API
#include <dlfcn.h>
#endif

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

// Without waiting for it. The Limited API leaves the function out, and every CPython has it.
inline bool gil_is_held() noexcept {
#ifdef Py_LIMITED_API
  static const auto check = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  return check();
#else
  return PyGILState_Check();
#endif
}

// Gives up the GIL where it is held. Whoever waits for other threads that may want it must not keep it.
class NoGil {
 public:
  NoGil() noexcept : state_(gil_is_held() ? PyEval_SaveThread() : nullptr) {}
  ~NoGil() {
    if (state_) {
      PyEval_RestoreThread(state_);
    }
  }
  NoGil(const NoGil&) = delete;
  NoGil& operator=(const NoGil&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace interop
