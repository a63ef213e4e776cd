// DLPack from C++ and Cython: `from interop.dlpack cimport from_dlpack, to_dlpack`. Every path makes the same checks,
// which torch's own C functions leave to Python: conj, neg, gradients, layout, and the bounds of the storage.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <ATen/dlpack.h>

#include "interop/bridges.h"

namespace interop::dlpack {

using bridges::DlpackExport;
using bridges::DlpackImport;
using bridges::OnReadonly;

// The tensor as a DLTensor that owns nothing: it is valid until the tensor is freed, resized or transposed in place.
// Allocates nothing, and does not need the GIL. A DLTensor has no flag for read-only memory. Without `read_only` the
// caller may write, so this raises for a tensor that requires grad, whose elements share memory, or whose memory is
// that of a read-only object.
inline DLTensor to_dltensor(const at::Tensor& tensor, bool read_only = false) {
  return bridges::bridges().to_dltensor(tensor, read_only);
}

// All other functions need the GIL, and raise BufferError for memory that cannot be exchanged.

// The tensor of a capsule, which is consumed, or of an object that supports DLPack.
inline at::Tensor from_dlpack(PyObject* object, const DlpackImport& wanted = {}) {
  return bridges::bridges().from_dlpack(object, wanted);
}
inline at::Tensor from_dlpack(PyObject* object, OnReadonly on_readonly) {
  return from_dlpack(object, DlpackImport{.on_readonly = on_readonly});
}
// Takes ownership of `managed`. If it raises, it has called the deleter.
inline at::Tensor from_dlpack(DLManagedTensorVersioned* managed, OnReadonly on_readonly = OnReadonly::raise) {
  return bridges::bridges().from_managed(managed, DlpackImport{.on_readonly = on_readonly});
}

// A new reference to a DLPack 1 capsule, which owns the tensor's memory.
inline PyObject* to_dlpack(const at::Tensor& tensor, const DlpackExport& wanted = {}) {
  return bridges::bridges().to_dlpack(tensor, wanted);
}
inline PyObject* to_dlpack(const at::Tensor& tensor, bool readonly) {
  return to_dlpack(tensor, DlpackExport{.readonly = readonly});
}
// The same without a capsule. The caller must call its deleter once, on any thread.
inline DLManagedTensorVersioned* to_managed(const at::Tensor& tensor, bool readonly = false) {
  return bridges::bridges().to_managed(tensor, readonly);
}

// The functions of torch.Tensor's __dlpack_c_exchange_api__, with these checks.
inline const DLPackExchangeAPI* exchange_api() {
  return bridges::bridges().exchange_api();
}

}  // namespace interop::dlpack
