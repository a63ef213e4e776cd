// Python objects that own what came by DLPack.
#pragma once

#include <Python.h>

namespace interop::bridges {

// A new reference to an object that owns nothing yet; null, and an error is set, if there is no memory.
PyObject* new_dlpack_owner() noexcept;

// From now on `owner` calls `deleter` with `managed`, once, when it dies. The GIL is held then, and an error that is on
// its way is kept from the deleter: there are some that count on the one or forget the other.
void give_to_owner(PyObject* owner, void* managed, void (*deleter)(void*)) noexcept;

// To be called once, when the module is imported. -1, and an error is set, if it fails.
int ready_dlpack_owner() noexcept;

}  // namespace interop::bridges
