// Calls from C++ to functions written in Cython: kernels, loops, gradients. A Python exception that a function leaves
// behind becomes a C++ exception, on any thread, and for `except *`, `except +` and `noexcept` alike.
#pragma once

#include <Python.h>

#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "interop/error_in_flight.h"
#include "interop/gil.h"
#include "interop/owned_ref.h"
#include "interop/python_error.h"

namespace interop {

// A Python exception that travels through C++, perhaps to another thread. translate_exception() sets it again.
class Raised : public std::exception {
 public:
  // Takes the error that is set. Needs the GIL.
  Raised() noexcept : exception_(take_error()) {}
  Raised(const Raised& other) noexcept : std::exception(other) {
    const Gil gil;
    exception_ = OwnedRef(Py_XNewRef(other.exception_.get()));
  }
  Raised(Raised&& other) noexcept = default;
  Raised& operator=(const Raised&) = delete;
  ~Raised() override {
    if (exception_) {
      const Gil gil;
      const ErrorInFlight error;  // dropping the last reference runs Python code
      exception_ = OwnedRef();
    }
  }

  // Sets the exception as the current error, once. Needs the GIL.
  void restore() noexcept {
    if (exception_) {
      set_error(std::move(exception_));
    }
  }

  // The exception, borrowed; null after restore().
  PyObject* get() const noexcept {
    return exception_.get();
  }

  const char* what() const noexcept override {
    return "a Python exception was raised in a function written in Cython";
  }

 private:
  OwnedRef exception_;
};

// Runs `f` with the GIL. Turns a PythonError into a Raised, because releasing the GIL may delete the thread state
// together with the error that is set.
template <class F>
decltype(auto) in_python(F f) {
  const Gil gil;
  try {
    return f();
  } catch (const PythonError&) {
    throw Raised();
  }
}

#ifndef Py_LIMITED_API  // which hides the fields of a thread state
// Whether `thread`, the state of this thread or null, has an error. No other thread sets one there, so this needs no
// GIL, unless the state may be freed.
inline bool has_error(const PyThreadState* thread) noexcept {
  if (thread && is_finalizing()) [[unlikely]] {
    return gil_is_held() && thread == PyGILState_GetThisThreadState() && PyErr_Occurred();
  }
#if PY_VERSION_HEX >= 0x030C0000
  return thread && thread->current_exception;
#else
  return thread && thread->curexc_type;
#endif
}
#endif

// Prepends the source location of an exception, the last entry of its traceback, to its message. Needs the GIL.
inline void add_place(PyObject* exception) noexcept {
  const auto attribute = [](const OwnedRef& object, const char* name) {
    return object ? OwnedRef(PyObject_GetAttrString(object.get(), name)) : OwnedRef();
  };
  OwnedRef place(PyException_GetTraceback(exception));
  for (OwnedRef next = attribute(place, "tb_next"); next && next.get() != Py_None; next = attribute(place, "tb_next")) {
    place = std::move(next);
  }
  const OwnedRef line = attribute(place, "tb_lineno");
  const OwnedRef file = attribute(attribute(attribute(place, "tb_frame"), "f_code"), "co_filename");
  const OwnedRef message(file && line ? PyObject_Str(exception) : nullptr);
  const OwnedRef ours(PyUnicode_FromString(" is symbolic here, "));
  // Another error that the function has raised instead stays as it is.
  const bool is_ours = message && ours && PyUnicode_Contains(message.get(), ours.get()) == 1;
  const OwnedRef text(is_ours ? PyUnicode_FromFormat("%S:%S: %U", file.get(), line.get(), message.get()) : nullptr);
  const OwnedRef arguments(text ? PyTuple_Pack(1, text.get()) : nullptr);
  if (arguments) {
    PyObject_SetAttrString(exception, "args", arguments.get());
  }
  PyErr_Clear();
}

// One call of a function written in Cython. Construct it before the call, and call check() afterwards. It takes the
// GIL only if there is an error.
class Callback {
 public:
  Callback() noexcept : thread_(PyGILState_GetThisThreadState()), outer_(innermost_) {
    if (error_is_set()) {
      set_aside();
    }
    innermost_ = this;
  }

  ~Callback() {
    innermost_ = outer_;
    if (attached_ || caught_ || earlier_) {
      finish();
    }
  }

  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;

  bool failed() const noexcept {
    return error_is_set() || caught_;
  }

  // Throws the error that the function raised.
  void check() {
    if (failed()) [[unlikely]] {
      Gil gil;
      throw Raised(take());
    }
  }

  // Makes the error that is about to be raised name its source location: torch.compile drops the traceback.
  static void locate() noexcept {
    if (innermost_) {
      innermost_->located_ = true;
    }
  }

  // The error that the function raised. Needs the GIL.
  Raised take() noexcept {
    if (caught_) {
      PyErr_Clear();  // the first error is the cause
      return std::move(*caught_);
    }
    if (located_) {
      const ErrorInFlight error;
      add_place(error.get());
    }
    return Raised();
  }

  // Handles an error that a function cannot return: see PyErr_WriteUnraisable below.
  static void write_unraisable(PyObject* where) noexcept {
    Callback* call = innermost_;
    if (!call || is_destructor(where)) {
      (PyErr_WriteUnraisable)(where);
    } else if (call->caught_) {
      PyErr_Clear();
    } else {
      call->caught_.emplace();
    }
  }

  // Cython may print an error with its traceback before it calls write_unraisable(), and keeps the error.
  static void print(int set_sys_last_vars) noexcept {
    if (innermost_) {
      PyErr_Clear();
    } else {
      (PyErr_PrintEx)(set_sys_last_vars);
    }
  }

  // Python does not know torch's threads. On such a thread, `with gil` creates a thread state. At its end it deletes
  // the state together with the error in it, which neither this class nor the calling function would then see. So the
  // first state that is created during a call lasts as long as the call: see PyGILState_Release below.
  static void release(PyGILState_STATE state) noexcept {
    Callback* call = innermost_;
    if (call && PyErr_Occurred()) {
      call->noted_ = true;
    }
    if (call && !call->thread_ && state == PyGILState_UNLOCKED) {
      call->state_ = state;
      call->attached_ = true;
      call->thread_ = PyEval_SaveThread();
    } else {
      (PyGILState_Release)(state);
    }
  }

 private:
  // An object may die anywhere, so its destructor's error is not an error of the function that was called.
  static bool is_destructor(PyObject* where) noexcept {
    if (!where || !PyUnicode_Check(where)) {
      return false;
    }
    const char* text = PyUnicode_AsUTF8AndSize(where, nullptr);
    const std::string_view name = text ? text : "";
    return name.ends_with("__dealloc__") || name.ends_with("__del__");
  }

  bool error_is_set() const noexcept {
#ifdef Py_LIMITED_API
    if (gil_is_held()) {
      return PyErr_Occurred();
    }
    if (!thread_ || !noted_) {
      return false;
    }
    const Gil gil;  // release() has seen an error, which the function may have handled since
    return PyErr_Occurred();
#else
    return has_error(thread_);
#endif
  }

  void set_aside() noexcept {
    Gil gil;
    earlier_.emplace();
  }

  void finish() noexcept {
    if (attached_) {
      restore_thread(thread_);
    }
    caught_.reset();
    if (earlier_) {
      Gil gil;
      if (!PyErr_Occurred()) {
        earlier_->restore();
      }
      earlier_.reset();
    }
    if (attached_) {
      (PyGILState_Release)(state_);
    }
  }

  PyThreadState* thread_;
  Callback* outer_;
  std::optional<Raised> caught_;   // set by write_unraisable()
  std::optional<Raised> earlier_;  // was set when the call began
  bool attached_ = false;
  bool noted_ = false;  // an error was set at the end of `with gil`
  bool located_ = false;
  PyGILState_STATE state_;

  static inline thread_local Callback* innermost_ = nullptr;
};

}  // namespace interop

// When a `noexcept` function raises, Cython calls PyErr_WriteUnraisable, which prints "Exception ignored", and the
// caller gets a meaningless result. If C++ called the function through a Callback, the error is raised instead.
#define PyErr_WriteUnraisable(where) ::interop::Callback::write_unraisable(where)
#define PyErr_PrintEx(set_sys_last_vars) ::interop::Callback::print(set_sys_last_vars)

// `with gil` begins with the first of these calls, and `with nogil` ends with the second.
#define PyGILState_Ensure() ::interop::ensure_gil()
#define PyEval_RestoreThread(state) ::interop::restore_thread(state)

// `with gil` ends with this call.
#define PyGILState_Release(state) ::interop::Callback::release(state)

#ifndef Py_LIMITED_API
// After calling an `except *` function without the GIL, Cython takes the GIL only to check for an error. While
// another thread is busy, it waits milliseconds for the GIL. This version reads the thread state instead. Cython
// defines its function with the parameter list `(void)` and calls it with `()`, so the macro gives the definition
// another name than the calls.
inline int interop_error_is_set_() noexcept {
  return ::interop::has_error(PyGILState_GetThisThreadState());
}
#define __Pyx_ErrOccurredWithGIL(...) interop_error_is_set_##__VA_ARGS__()
#endif
