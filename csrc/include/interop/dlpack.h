// DLPack, from C++ and from Cython: `from interop.dlpack cimport from_dlpack, to_dlpack`. The same checks on every
// path, which torch's own C functions leave to Python: conj, neg, gradients, layout, and what is left of the storage.
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
// Nothing is allocated, and it does not need the GIL. A DLTensor cannot say that it is read-only: whoever wants to
// write leaves out `read_only`, and then a tensor that requires grad, or whose elements share memory, or are those of a
// read-only object, is refused.
inline DLTensor to_dltensor(const at::Tensor& tensor, bool read_only = false) {
  return bridges::bridges().to_dltensor(tensor, read_only);
}

// All others need the GIL, and raise BufferError for memory that cannot be exchanged.

// The tensor of a capsule, which is used up, or of an object that supports DLPack.
inline at::Tensor from_dlpack(PyObject* object, const DlpackImport& wanted = {}) {
  return bridges::bridges().from_dlpack(object, wanted);
}
inline at::Tensor from_dlpack(PyObject* object, OnReadonly on_readonly) {
  return from_dlpack(object, DlpackImport{.on_readonly = on_readonly});
}
// Takes over `managed`, also where it fails: then its deleter has been called.
inline at::Tensor from_dlpack(DLManagedTensorVersioned* managed, OnReadonly on_readonly = OnReadonly::raise) {
  return bridges::bridges().from_managed(managed, DlpackImport{.on_readonly = on_readonly});
}

// A capsule of DLPack 1 that owns the tensor's memory, a new reference.
inline PyObject* to_dlpack(const at::Tensor& tensor, const DlpackExport& wanted = {}) {
  return bridges::bridges().to_dlpack(tensor, wanted);
}
inline PyObject* to_dlpack(const at::Tensor& tensor, bool readonly) {
  return to_dlpack(tensor, DlpackExport{.readonly = readonly});
}
// The same without a capsule: whoever gets it calls its deleter, once, on any thread.
inline DLManagedTensorVersioned* to_managed(const at::Tensor& tensor, bool readonly = false) {
  return bridges::bridges().to_managed(tensor, readonly);
}

// The functions of torch.Tensor's __dlpack_c_exchange_api__, with the checks.
inline const DLPackExchangeAPI* exchange_api() {
  return bridges::bridges().exchange_api();
}

}  // namespace interop::dlpack
