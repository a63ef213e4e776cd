// Python objects that own memory. A tensor over memory of theirs may die on any thread, with or without the GIL, while
// an exception is on its way, and after the interpreter has ended.
#pragma once

#include <Python.h>
#include <structmember.h>

#include <c10/core/Allocator.h>

#include <new>
#include <utility>

#include "interop/error_in_flight.h"
#include "interop/exceptions.h"
#include "interop/gil.h"
#include "interop/owned_ref.h"

namespace interop::bridges {

namespace detail {

// Owners may own owners in turn: an array over a memoryview over a tensor over an array, as often as somebody has gone
// round. Freed one inside the other, they would need a stack as deep as they are many. So from some depth on they wait
// until those around them are freed, as CPython does it with its own containers (Py_TRASHCAN_BEGIN).
struct Waiting {
  Waiting* next;
  c10::DeleterFnPtr drop;
  void* what;
};
struct Freeing {
  int depth;
  Waiting* waiting;
};
inline constexpr int deepest_freeing = 50;

// What waits is freed by the outermost call on this thread, as that was called: those that need the GIL have one list,
// and those that do without, whose callers may have given it up, another.
enum class Needs { gil, nothing };
inline constinit thread_local Freeing freeing[2]{};

// Calls `drop(what)`, now or when what is being freed around it on this thread is freed.
template <Needs needs>
void free_flat(c10::DeleterFnPtr drop, void* what) noexcept {
  Freeing& state = freeing[static_cast<int>(needs)];
  if (state.depth >= deepest_freeing) [[unlikely]] {
    if (auto* waiting = new (std::nothrow) Waiting{state.waiting, drop, what}) {
      state.waiting = waiting;
      return;
    }
  }
  ++state.depth;
  drop(what);
  while (state.depth == 1 && state.waiting) [[unlikely]] {
    const Waiting first = *state.waiting;
    delete std::exchange(state.waiting, first.next);
    first.drop(first.what);
  }
  --state.depth;
}

}  // namespace detail

// The Python object that owns a T for its consumer: a tensor's storage, an array, or whoever asks for an attribute. It
// destroys the T with the GIL. T has a `type_name`, a `doc` and, for attributes, `members`.
//
// Not part of garbage collection: a cycle would lead through the C++ objects of a tensor, which the collector does not
// see.
template <class T>
struct Owner {
  PyObject_HEAD
  T value;

  // The type must be ready.
  template <class... A>
  static OwnedRef make(A&&... arguments) {
    auto* owner = PyObject_New(Owner, &type);
    OwnedRef reference(checked(reinterpret_cast<PyObject*>(owner)));
    static_assert(noexcept(T{std::forward<A>(arguments)...}));  // or there would be nothing to destroy
    new (&owner->value) T{std::forward<A>(arguments)...};
    return reference;
  }

  static T& of(const OwnedRef& owner) noexcept {
    return reinterpret_cast<Owner*>(owner.get())->value;
  }

  // To be called once, when the module is imported. -1, and an error is set, if it fails.
  static int ready() noexcept {
    return PyType_Ready(&type);
  }

 private:
  static void dealloc(PyObject* self) noexcept {
    detail::free_flat<detail::Needs::gil>(&destroy, self);
  }
  static void destroy(void* self) noexcept {
    static_cast<Owner*>(self)->value.~T();
    PyObject_Free(self);
  }
  static constexpr PyMemberDef* members() noexcept {
    if constexpr (requires { T::members; }) {
      return T::members;
    } else {
      return nullptr;
    }
  }

  static PyTypeObject type;
};

// clang-format off: the macro brings a comma of its own.
template <class T>
PyTypeObject Owner<T>::type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0)
    .tp_name = T::type_name,
    .tp_basicsize = sizeof(Owner),
    .tp_dealloc = dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = T::doc,
    .tp_members = members(),
};
// clang-format on

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

inline void drop_reference(void* object) noexcept {
  const ErrorInFlight error;  // dropping the last reference runs Python code
  Py_DECREF(static_cast<PyObject*>(object));
}

inline void drop(void* object) noexcept {
  free_flat<Needs::gil>(&drop_reference, object);
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
