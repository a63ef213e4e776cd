// A Python object that keeps the memory of a tensor alive: the base of an ndarray.
#pragma once

#include <Python.h>

#include "memory.h"

namespace interop::bridges {

// A new reference: to the object that owns the memory, if there is one, else to one that holds it.
PyObject* owner_object(c10::StorageImpl& storage);

// To be called once, when the module is imported. -1, and an error is set, if it fails.
int ready_owner_object() noexcept;

}  // namespace interop::bridges
