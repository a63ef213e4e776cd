// Scopes that take the GIL if it is not held, or release it if it is.
#pragma once

#include <Python.h>
#include <unistd.h>

#ifdef Py_LIMITED_API
#include <dlfcn.h>
#endif

namespace interop {

// Calls `take`, which requests the GIL.
//
// After the interpreter has ended, Python up to 3.13 ends a thread that requests the GIL, by unwinding its stack.
// Code that is noexcept, or that catches everything as Cython's does, turns that into an abort of the process. Here
// such a thread waits for the end of the process instead, as it does in Python 3.14.
template <class F>
auto or_wait_for_the_end(F&& take) noexcept {
  try {
    return take();
  } catch (...) {
    for (;;) {
      pause();
    }
  }
}

inline PyGILState_STATE ensure_gil() noexcept {
  return or_wait_for_the_end([] { return (PyGILState_Ensure)(); });
}

inline void restore_thread(PyThreadState* state) noexcept {
  or_wait_for_the_end([state] { (PyEval_RestoreThread)(state); });
}

// Costs a few nanoseconds if the thread already holds the GIL.
class Gil {
 public:
  Gil() noexcept : state_(ensure_gil()) {}
  ~Gil() {
    PyGILState_Release(state_);
  }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;

 private:
  PyGILState_STATE state_;
};

#ifndef Py_LIMITED_API  // which has no name for this before CPython 3.13
// Whether the interpreter ends. Then other threads cannot take the GIL, and the states of threads are freed.
inline bool is_finalizing() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing();
#else
  return _Py_IsFinalizing();
#endif
}
#endif

// The thread state that holds the GIL (before CPython 3.12, that of any thread), or null.
inline PyThreadState* running_thread() noexcept {
#if defined(Py_LIMITED_API)  // which has none of the two, though every CPython has one
  using Get = PyThreadState* (*)();
  static const auto get = [] {
    void* found = dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked");
    return reinterpret_cast<Get>(found ? found : dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet"));
  }();
  return get();
#elif PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked();
#else
  return _PyThreadState_UncheckedGet();
#endif
}

// Does not wait for the GIL. PyGILState_Check() compares the same two, but always says yes once any code has made a
// subinterpreter.
inline bool gil_is_held() noexcept {
  PyThreadState* running = running_thread();
  return running && running == PyGILState_GetThisThreadState();
}

// Releases the GIL if it is held. A thread must release it before it waits for threads that may request it.
class NoGil {
 public:
  NoGil() noexcept : state_(gil_is_held() ? PyEval_SaveThread() : nullptr) {}
  ~NoGil() {
    if (state_) {
      restore_thread(state_);
    }
  }
  NoGil(const NoGil&) = delete;
  NoGil& operator=(const NoGil&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace interop
