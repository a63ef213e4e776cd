// See dlpack_owner.h.
#include "dlpack_owner.h"

#include "interop/error_in_flight.h"

namespace interop::bridges {

namespace {

struct Owner {
  PyObject_HEAD
  void* managed;
  void (*deleter)(void*);
};

void dealloc(PyObject* self) {
  auto* owner = reinterpret_cast<Owner*>(self);
  if (owner->deleter) {
    const ErrorInFlight error;
    owner->deleter(owner->managed);
    if (PyErr_Occurred()) {
      PyErr_WriteUnraisable(nullptr);
    }
  }
  PyObject_Free(self);
}

PyTypeObject owner_type = {
    .ob_base = {.ob_base = {.ob_refcnt = 1, .ob_type = nullptr}, .ob_size = 0},
    .tp_name = "interop._bridges.Dlpack",
    .tp_basicsize = sizeof(Owner),
    .tp_dealloc = dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "Owns the memory that a tensor took over by DLPack.",
};

}  // namespace

PyObject* new_dlpack_owner() noexcept {
  auto* owner = PyObject_New(Owner, &owner_type);
  if (owner) {
    owner->deleter = nullptr;
  }
  return reinterpret_cast<PyObject*>(owner);
}

void give_to_owner(PyObject* owner, void* managed, void (*deleter)(void*)) noexcept {
  reinterpret_cast<Owner*>(owner)->managed = managed;
  reinterpret_cast<Owner*>(owner)->deleter = deleter;
}

int ready_dlpack_owner() noexcept {
  return PyType_Ready(&owner_type);
}

}  // namespace interop::bridges
