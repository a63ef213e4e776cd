// Functions written in Cython that C++ calls: kernels, loops, gradients. A Python exception that such a function leaves
// behind becomes a C++ exception, whatever thread it runs on and whether it is `except *`, `except +` or `noexcept`.
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

// A Python exception on its way through C++, perhaps to another thread. translate_exception() sets it again.
class Raised : public std::exception {
 public:
  // Takes over the error that is set, with the GIL.
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

  // Makes it the error that is set, with the GIL, once.
  void restore() noexcept {
    if (exception_) {
      set_error(std::move(exception_));
    }
  }

  const char* what() const noexcept override {
    return "a Python exception was raised in a function written in Cython";
  }

 private:
  OwnedRef exception_;
};

// Runs `f` with the GIL. A Python error that it throws is carried on: the GIL's end may end a thread's state, and with
// it the error that is set.
template <class F>
decltype(auto) in_python(F f) {
  const Gil gil;
  try {
    return f();
  } catch (const PythonError&) {
    throw Raised();
  }
}

#ifndef Py_LIMITED_API  // which shows nothing of a thread's state
// Whether the state of this thread has an error. No other thread sets one there, so this needs no GIL.
inline bool has_error(const PyThreadState* thread) noexcept {
#if PY_VERSION_HEX >= 0x030C0000
  return thread && thread->current_exception;
#else
  return thread && thread->curexc_type;
#endif
}
#endif

// Adds to the message of an exception where in the source it was raised, with the GIL: the last place of its traceback.
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
  // Not of another error, which the function has raised instead.
  const bool is_ours = message && ours && PyUnicode_Contains(message.get(), ours.get()) == 1;
  const OwnedRef text(is_ours ? PyUnicode_FromFormat("%S:%S: %U", file.get(), line.get(), message.get()) : nullptr);
  const OwnedRef arguments(text ? PyTuple_Pack(1, text.get()) : nullptr);
  if (arguments) {
    PyObject_SetAttrString(exception, "args", arguments.get());
  }
  PyErr_Clear();
}

// One call of a function written in Cython: made before it, asked by check() after it. It takes the GIL only when there
// is an error.
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

  // Throws what the function raised.
  void check() {
    if (failed()) [[unlikely]] {
      Gil gil;
      throw Raised(take());
    }
  }

  // The error that is about to be raised is to say where in the source that is: torch.compile drops the traceback.
  static void locate() noexcept {
    if (innermost_) {
      innermost_->located_ = true;
    }
  }

  // The error that the function raised, with the GIL.
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

  // What a function does with an error that it cannot return: see PyErr_WriteUnraisable below.
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

  // Before it writes, Cython may print the error with its traceback, and then has it still.
  static void print(int set_sys_last_vars) noexcept {
    if (innermost_) {
      PyErr_Clear();
    } else {
      (PyErr_PrintEx)(set_sys_last_vars);
    }
  }

  // A thread of torch's is unknown to Python. `with gil` makes a state for it, and at its end deletes the state
  // together with the error in it, which then neither we nor the calling function would see. So the first state that is
  // made during a call lasts as long as the call: see PyGILState_Release below.
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
  // An object may end anywhere, and its destructor's error is nobody's whom the function has called.
  static bool is_destructor(PyObject* where) noexcept {
    if (!where || !PyUnicode_Check(where)) {
      return false;
    }
    const char* text = PyUnicode_AsUTF8AndSize(where, nullptr);
    const std::string_view name = text ? text : "";
    return name.ends_with("__dealloc__") || name.ends_with("__del__");
  }

  bool error_is_set() const noexcept {
#ifdef Py_LIMITED_API  // what was set without the GIL, release() has noted
    return thread_ && (noted_ || (gil_is_held() && PyErr_Occurred()));
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
      PyEval_RestoreThread(thread_);
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
  std::optional<Raised> caught_;   // by write_unraisable
  std::optional<Raised> earlier_;  // was set when the call began
  bool attached_ = false;
  bool noted_ = false;  // an error at the end of `with gil`
  bool located_ = false;
  PyGILState_STATE state_;

  static inline thread_local Callback* innermost_ = nullptr;
};

}  // namespace interop

// Cython ends a `noexcept` function that raises with PyErr_WriteUnraisable, which prints "Exception ignored", and the
// caller gets a result that means nothing. In a call that C++ makes of such a function, the error is raised instead.
#define PyErr_WriteUnraisable(where) ::interop::Callback::write_unraisable(where)
#define PyErr_PrintEx(set_sys_last_vars) ::interop::Callback::print(set_sys_last_vars)

// What `with gil` ends with.
#define PyGILState_Release(state) ::interop::Callback::release(state)

#ifndef Py_LIMITED_API
// After a call of an `except *` function without the GIL, Cython takes the GIL only to ask whether there is an error,
// and with another thread busy waits for it for milliseconds. Here that is read from the thread's state. Cython defines
// its function with the parameter `void`, and calls it with none: so the definition gets another name than the calls.
inline int interop_error_is_set_() noexcept {
  return ::interop::has_error(PyGILState_GetThisThreadState());
}
#define __Pyx_ErrOccurredWithGIL(...) interop_error_is_set_##__VA_ARGS__()
#endif
