// The least C++ that makes what the bridges make, of one dimension and float32: no argument is checked, and only the
// functions that say so own memory.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <ATen/dlpack.h>
#include <c10/core/Storage.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <utility>

#include "bridges/reused.h"
#include "interop/bridges.h"
#include "interop/exceptions.h"
#include "interop/tensor.h"

namespace cheapest {

using interop::bridges::Reused;

inline float memory[3];

inline PyObject* tensor_of(c10::Storage&& storage) {
  auto impl = c10::make_intrusive<Reused<c10::TensorImpl>>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(c10::kFloat));
  impl->set_sizes_contiguous(3);
  return interop::wrap(at::Tensor(std::move(impl)));
}

// It reuses the memory of the last tensor and storage, as ours does.
inline PyObject* tensor_over(void* owner, c10::DeleterFnPtr deleter) {
  auto storage = c10::make_intrusive<Reused<c10::StorageImpl>>(
      c10::StorageImpl::use_byte_size_t(), sizeof(memory), c10::DataPtr(memory, owner, deleter, c10::kCPU), nullptr,
      false);
  return tensor_of(c10::Storage(std::move(storage)));
}

inline void drop(void* object) noexcept {
  const PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF(static_cast<PyObject*>(object));
  PyGILState_Release(state);
}

// Over memory that lives as long as the process.
inline PyObject* unowned(PyObject*) {
  return tensor_over(nullptr, &c10::detail::deleteNothing);
}

// The same, and the tensor owns a reference to `owner`.
inline PyObject* owned(PyObject* owner) {
  return tensor_over(Py_NewRef(owner), &drop);
}

// Another tensor over the storage of one.
inline PyObject* alias(PyObject* tensor) {
  return tensor_of(c10::Storage(interop::tensor_of(tensor).storage()));
}

// A capsule of DLPack that owns a reference to the tensor's storage.
struct Managed {
  DLManagedTensorVersioned managed;
  int64_t sizes[2];
  c10::Storage storage;
};

inline void end(PyObject* capsule) {
  delete static_cast<Managed*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
}

inline PyObject* capsule(PyObject* object) {
  const at::Tensor& tensor = interop::tensor_of(object);
  auto* made = new Managed{.managed = {}, .sizes = {tensor.size(0), tensor.stride(0)}, .storage = tensor.storage()};
  made->managed.dl_tensor = {
      .data = tensor.data_ptr(),
      .device = {kDLCPU, 0},
      .ndim = 1,
      .dtype = {kDLFloat, 32, 1},
      .shape = made->sizes,
      .strides = made->sizes + 1,
      .byte_offset = 0};
  return PyCapsule_New(made, "dltensor_versioned", &end);
}

// `interop.from_numpy` as a function of CPython's C API that takes no keywords, and not as one of Cython.
inline PyObject* from_numpy(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  if (count != 1) {
    return PyErr_Format(PyExc_TypeError, "from_numpy takes 1 argument, got %zd", count);
  }
  try {
    return interop::wrap(interop::bridges::from_numpy(arguments[0]));
  } catch (...) {
    interop::translate_exception();
    return nullptr;
  }
}

inline PyObject* made_from_numpy() {
  static PyMethodDef method{
      "from_numpy", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&from_numpy)), METH_FASTCALL, nullptr};
  return PyCFunction_New(&method, nullptr);
}

// What two owners of memory cost that are counted: one more, and one less.
inline std::atomic<long> owners{1};

inline void counted() {
  owners.fetch_add(1, std::memory_order_relaxed);
  owners.fetch_sub(1, std::memory_order_acq_rel);
}

inline void uncounted() {
  owners.store(owners.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  owners.store(owners.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
}

}  // namespace cheapest
