// Finds what interop's compiled parts give to modules: a pointer in a capsule, under a name that goes up with each
// change of what it points to.
#pragma once

#include <Python.h>

#include <atomic>

#include "interop/error_in_flight.h"
#include "interop/exceptions.h"
#include "interop/gil.h"
#include "interop/owned_ref.h"

namespace interop::detail {

// With or without the GIL. `use` is what the caller does with it, for the ImportError of a module that was built with
// another torch-interop. What goes wrong in importing `module` is raised as it is.
inline void* find_capsule(const char* module, const char* attribute, const char* use) {
  const Gil gil;
  // Not PyCapsule_Import: that imports no submodules.
  const OwnedRef found_in(checked(PyImport_ImportModule(module)));
  // The capsule stays in its module, and what it points to stays for good.
  const OwnedRef object(PyObject_GetAttrString(found_in.get(), attribute));
  void* found = object ? PyCapsule_GetPointer(object.get(), attribute) : nullptr;
  if (!found) {
    const OwnedRef error = take_error();
    raise_error(
        PyExc_ImportError,
        "this module %s and needs the torch-interop that it was built with (%.200R). Rebuild the module, in its "
        "project: pip install --no-build-isolation --force-reinstall --no-deps .",
        use, error.get());
  }
  return found;
}

// The T, found when it is first asked for. To find it is to import its module, which gives up the GIL for a while: no
// lock is held meanwhile, as that of a static variable's initialisation would be.
template <class T>
T& find_once(const char* use) {
  static std::atomic<T*> known{nullptr};
  T* found = known.load(std::memory_order_acquire);
  if (!found) [[unlikely]] {
    found = static_cast<T*>(find_capsule(T::module, T::attribute, use));
    known.store(found, std::memory_order_release);
  }
  return *found;
}

}  // namespace interop::detail
