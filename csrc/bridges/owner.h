// Python objects that own memory. A tensor over their memory may die on any thread, with or without the GIL, while an
// exception propagates, and after the interpreter has ended.
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

// Owners may own other owners: an array over a memoryview over a tensor over an array, for any number of round trips.
// Freeing them recursively would need a stack of that depth. So beyond a fixed depth they are queued until the outer
// ones are freed, as in CPython's own containers (Py_TRASHCAN_BEGIN).
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

// The outermost call on this thread frees the queue, in the GIL state of that call. So objects that need the GIL have
// one queue, and objects that do not, whose callers may have released it, another.
enum class Needs { gil, nothing };
inline constinit thread_local Freeing freeing[2]{};

// Calls `drop(what)`, now or when the outermost call on this thread frees its queue.
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

// A Python object that owns a T for its consumer: a tensor's storage, an array, or the reader of an attribute. It
// destroys the T with the GIL held. T has a `type_name`, a `doc` and, for attributes, `members`.
//
// Not tracked by the garbage collector: a cycle would pass through a tensor's C++ objects, which the collector cannot
// see.
template <class T>
struct Owner {
  PyObject_HEAD
  T value;

  // Call ready() first.
  template <class... A>
  static OwnedRef make(A&&... arguments) {
    auto* owner = PyObject_New(Owner, &type);
    OwnedRef reference(checked(reinterpret_cast<PyObject*>(owner)));
    static_assert(noexcept(T{std::forward<A>(arguments)...}));  // or dealloc would destroy an unconstructed T
    new (&owner->value) T{std::forward<A>(arguments)...};
    return reference;
  }

  static T& of(const OwnedRef& owner) noexcept {
    return reinterpret_cast<Owner*>(owner.get())->value;
  }

  // The T of `object` if it is such an owner; otherwise null.
  static T* find(PyObject* object) noexcept {
    return Py_IS_TYPE(object, &type) ? &reinterpret_cast<Owner*>(object)->value : nullptr;
  }

  // Call this once, when the module is imported. Returns 0, or -1 with an error set.
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

// Whether objects can still be returned to the interpreter. At its end, threads leak what they own, and the system
// reclaims it at the end of the process.
inline bool interpreter_is_alive() noexcept {
  return Py_IsInitialized() && !is_finalizing();
}

namespace detail {

inline void drop_reference(void* object) noexcept {
  const ErrorInFlight error;  // dropping the last reference runs Python code
  Py_DECREF(static_cast<PyObject*>(object));
}

inline void drop(void* object) noexcept {
#ifndef Py_GIL_DISABLED
  if (Py_REFCNT(static_cast<PyObject*>(object)) > 1) [[likely]] {  // frees nothing, so it runs no Python code
    Py_DECREF(static_cast<PyObject*>(object));
    return;
  }
#endif
  free_flat<Needs::gil>(&drop_reference, object);
}

// On a thread whose thread state has released the GIL, as in torch's tensor destructor: the cheap way back.
inline void drop_on(PyThreadState* thread, void* object) noexcept {
  restore_thread(thread);
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
  } else if (thread == running_thread()) {
    detail::drop(object);
  } else {
    detail::drop_on(thread, object);
  }
}

// The same for read-only memory. Exports of such a tensor are read-only too.
inline void drop_read_only_owner(void* object) noexcept {
  drop_owner(object);
}

}  // namespace interop::bridges
