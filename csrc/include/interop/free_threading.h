// Locks for data in free-threaded Python. They do nothing in a build with the GIL, which protects the data itself.
#pragma once

#include <Python.h>

#include "interop/gil.h"
#include "interop/owned_ref.h"

namespace interop {

#ifdef Py_GIL_DISABLED

inline constexpr bool free_threaded = true;

// A thread that waits for the mutex detaches its thread state, so it does not block a thread that stops the world.
// Never hold the mutex while Python code can run, because that code may lock it again. Hold it for a few statements
// only: the one that copies copy-on-write memory is the exception.
class Mutex {
 public:
  void lock() noexcept {
    or_wait_for_the_end([this] { PyMutex_Lock(&mutex_); });  // it attaches the thread state again after a wait
  }
  void unlock() noexcept {
    PyMutex_Unlock(&mutex_);
  }

 private:
  PyMutex mutex_{};
};

// Py_BEGIN_CRITICAL_SECTION for a C++ scope: CPython's own functions that change `object` wait for its end. The
// section is suspended while this thread waits for another lock or detaches its thread state.
class CriticalSection {
 public:
  explicit CriticalSection(PyObject* object) noexcept {
    or_wait_for_the_end([this, object] { PyCriticalSection_Begin(&section_, object); });
  }
  ~CriticalSection() {
    or_wait_for_the_end([this] { PyCriticalSection_End(&section_); });  // it may resume a section around this one
  }
  CriticalSection(const CriticalSection&) = delete;
  CriticalSection& operator=(const CriticalSection&) = delete;

 private:
  PyCriticalSection section_;
};

// A reference read from an object that another thread may change: owned.
using SharedRef = OwnedRef;

inline SharedRef shared_ref(PyObject* borrowed) noexcept {
  return SharedRef(Py_XNewRef(borrowed));
}
// These three return null, without an error, if there is no such item.
inline SharedRef type_attribute(PyTypeObject* type, PyObject* name) noexcept {
  return SharedRef(_PyType_LookupRef(type, name));
}
inline SharedRef list_item(PyObject* list, Py_ssize_t index) noexcept {
  SharedRef found(PyList_GetItemRef(list, index));
  if (!found) {
    PyErr_Clear();
  }
  return found;
}
inline SharedRef dict_item(PyObject* dict, const char* key) noexcept {
  PyObject* found = nullptr;
  if (PyDict_GetItemStringRef(dict, key, &found) < 0) {
    PyErr_Clear();
  }
  return SharedRef(found);
}

#else

inline constexpr bool free_threaded = false;

struct Mutex {
  void lock() noexcept {}
  void unlock() noexcept {}
};

struct CriticalSection {
  explicit CriticalSection(PyObject*) noexcept {}
  ~CriticalSection() {}  // avoids a warning for an unused variable
};

// A reference read from an object that another thread may change: borrowed, and valid until Python code can run.
class SharedRef {
 public:
  explicit SharedRef(PyObject* object) noexcept : object_(object) {}

  explicit operator bool() const noexcept {
    return object_ != nullptr;
  }
  PyObject* get() const noexcept {
    return object_;
  }

 private:
  PyObject* object_;
};

inline SharedRef shared_ref(PyObject* borrowed) noexcept {
  return SharedRef(borrowed);
}
#ifndef Py_LIMITED_API
inline SharedRef type_attribute(PyTypeObject* type, PyObject* name) noexcept {
  return SharedRef(_PyType_Lookup(type, name));
}
#endif
inline SharedRef list_item(PyObject* list, Py_ssize_t index) noexcept {
  return SharedRef(index < PyList_Size(list) ? PyList_GetItem(list, index) : nullptr);
}
inline SharedRef dict_item(PyObject* dict, const char* key) noexcept {
  return SharedRef(PyDict_GetItemString(dict, key));
}

#endif

// Holds a Mutex for its own lifetime.
class Lock {
 public:
  explicit Lock(Mutex& mutex) noexcept : mutex_(mutex) {
    mutex_.lock();
  }
  ~Lock() {
    mutex_.unlock();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace interop
