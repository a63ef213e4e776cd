// The converters, for C++ and Cython: `from interop.bridges cimport from_numpy, to_numpy`. They are compiled once,
// into interop._bridges. This header is light, and looks them up at the first call.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <ATen/dlpack.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

#include "interop/capsule.h"

namespace interop::bridges {

// Any change below must change the namespace's name and the attribute: see interop/runtime.h.
inline namespace bridges_2 {

// What a converter does with read-only memory: torch has no read-only tensors.
enum class OnReadonly { raise, share, copy };

// How to interpret a buffer, where its own description does not apply.
struct BufferView {
  c10::ScalarType dtype = c10::ScalarType::Undefined;  // the default: that of the format
  bool has_shape = false;
  at::IntArrayRef shape;  // borrowed
  int64_t offset = 0;     // bytes
};

// How to import a tensor through DLPack.
struct DlpackImport {
  OnReadonly on_readonly = OnReadonly::raise;
  std::optional<bool> copy;           // true: always; false: never; unset: if needed
  std::optional<c10::Device> device;  // the target; unset: the source's own
};

// How to export a tensor through DLPack: see interop.to_dlpack().
struct DlpackExport {
  bool versioned = true;  // a capsule of DLPack 1, otherwise of DLPack 0
  bool readonly = false;
  std::optional<bool> copy;
  std::optional<c10::Device> device;
  int64_t stream = -1;  // the consumer's, encoded as in DLPack: -1 if nothing waits
};

class Bridges {
 public:
  // The capsule that points to the object.
  static constexpr const char* module = "interop._bridges";
  static constexpr const char* attribute = "_bridges_3";

  virtual at::Tensor from_numpy(PyObject* array, OnReadonly on_readonly) = 0;
  // Returned objects are new references.
  virtual PyObject* to_numpy(const at::Tensor& tensor, bool force, bool readonly) = 0;
  virtual PyObject* as_memoryview(const at::Tensor& tensor, bool readonly) = 0;
  virtual at::Tensor from_buffer(PyObject* exporter, const BufferView& view, OnReadonly on_readonly) = 0;

  // See interop/dlpack.h.
  virtual at::Tensor from_dlpack(PyObject* object, const DlpackImport& wanted) = 0;
  virtual PyObject* to_dlpack(const at::Tensor& tensor, const DlpackExport& wanted) = 0;
  virtual at::Tensor from_managed(DLManagedTensorVersioned* managed, const DlpackImport& wanted) = 0;
  virtual DLManagedTensorVersioned* to_managed(const at::Tensor& tensor, bool readonly) = 0;
  virtual const DLPackExchangeAPI* exchange_api() = 0;
  // Needs no GIL.
  virtual DLTensor to_dltensor(const at::Tensor& tensor, bool readonly) = 0;

  // From an object with the attribute __cuda_array_interface__, and to one.
  virtual at::Tensor from_cuda_array_interface(PyObject* object, OnReadonly on_readonly) = 0;
  virtual PyObject* to_cuda_array_interface(const at::Tensor& tensor, bool readonly) = 0;

 protected:
  ~Bridges() = default;
};

// Works with or without the GIL.
inline Bridges& bridges() {
  return interop::detail::find_once<Bridges>("calls the converters of interop");
}

// The functions of `interop` with the same names. All of them need the GIL.

inline at::Tensor from_numpy(PyObject* array, OnReadonly on_readonly = OnReadonly::raise) {
  return bridges().from_numpy(array, on_readonly);
}
inline PyObject* to_numpy(const at::Tensor& tensor, bool force = false, bool readonly = false) {
  return bridges().to_numpy(tensor, force, readonly);
}
inline PyObject* as_memoryview(const at::Tensor& tensor, bool readonly = false) {
  return bridges().as_memoryview(tensor, readonly);
}
inline at::Tensor from_buffer(PyObject* exporter, OnReadonly on_readonly = OnReadonly::raise) {
  return bridges().from_buffer(exporter, {}, on_readonly);
}
inline at::Tensor from_buffer(
    PyObject* exporter,
    c10::ScalarType dtype,
    at::IntArrayRef shape,
    int64_t offset = 0,
    OnReadonly on_readonly = OnReadonly::raise) {
  return bridges().from_buffer(exporter, {dtype, true, shape, offset}, on_readonly);
}
inline at::Tensor from_cuda_array_interface(PyObject* object, OnReadonly on_readonly = OnReadonly::raise) {
  return bridges().from_cuda_array_interface(object, on_readonly);
}
inline PyObject* to_cuda_array_interface(const at::Tensor& tensor, bool readonly = false) {
  return bridges().to_cuda_array_interface(tensor, readonly);
}

}  // namespace bridges_2

}  // namespace interop::bridges
