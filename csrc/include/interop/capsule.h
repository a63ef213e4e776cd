// Finds the interfaces that interop's compiled parts export to modules. Each is a pointer in a capsule, whose name
// has a number that increases with each change of the interface.
#pragma once

#include <Python.h>

#include <atomic>

#include "interop/error_in_flight.h"
#include "interop/exceptions.h"
#include "interop/gil.h"
#include "interop/owned_ref.h"

namespace interop::detail {

// Call it with or without the GIL. `use` says what the caller does with the pointer, for the ImportError in a module
// that was built with another torch-interop. An exception from the import of `module` propagates unchanged.
inline void* find_capsule(const char* module, const char* attribute, const char* use) {
  const Gil gil;
  // PyCapsule_Import does not import submodules.
  const OwnedRef found_in(checked(PyImport_ImportModule(module)));
  // The module keeps the capsule, and the object behind the pointer is never freed.
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

// The T, looked up on first use. The lookup imports a module, which releases the GIL for a while. So no lock may be
// held during it, such as the one around the initialisation of a static variable.
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
