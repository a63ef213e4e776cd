// See owner_object.h.
#include "owner_object.h"

#include <new>
#include <utility>

#include "interop/exceptions.h"

namespace interop::bridges {

namespace {

struct Owner {
  PyObject_HEAD
  Hold hold;
};

void dealloc(PyObject* self) {
  reinterpret_cast<Owner*>(self)->hold.~Hold();
  PyObject_Free(self);
}

// Not part of garbage collection: the memory refers to no Python object, or owner_object() would have found it.
PyTypeObject owner_type = {
    .ob_base = {.ob_base = {.ob_refcnt = 1, .ob_type = nullptr}, .ob_size = 0},
    .tp_name = "interop._bridges.Memory",
    .tp_basicsize = sizeof(Owner),
    .tp_dealloc = dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "Keeps the memory of a tensor alive for an array that shares it.",
};

}  // namespace

PyObject* owner_object(c10::StorageImpl& storage) {
  Hold hold = Hold::of(storage);
  if (PyObject* object = hold.object()) {
    return Py_NewRef(object);
  }
  auto* owner = PyObject_New(Owner, &owner_type);
  if (!owner) {
    throw PythonError();
  }
  new (&owner->hold) Hold(std::move(hold));
  return reinterpret_cast<PyObject*>(owner);
}

int ready_owner_object() noexcept {
  return PyType_Ready(&owner_type);
}

}  // namespace interop::bridges
