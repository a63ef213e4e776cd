// The converters, from C++ and from Cython: `from interop.bridges cimport from_numpy, to_numpy`. They are compiled
// once, into interop._bridges; what is here is light, and finds them when they are first called.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <ATen/dlpack.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

#include "interop/capsule.h"

namespace interop::bridges {

// Changes of anything below change the name, and the attribute: see interop/runtime.h.
inline namespace bridges_2 {

// What becomes of memory that is read-only: torch has no read-only tensors.
enum class OnReadonly { raise, share, copy };

// As what a buffer is to be seen, where it is not as what it says.
struct BufferView {
  c10::ScalarType dtype = c10::ScalarType::Undefined;  // that of its format
  bool has_shape = false;
  at::IntArrayRef shape;  // borrowed
  int64_t offset = 0;     // bytes
};

// How a tensor is to be taken over by DLPack.
struct DlpackImport {
  OnReadonly on_readonly = OnReadonly::raise;
  std::optional<bool> copy;           // true: always, false: never; else if it is needed
  std::optional<c10::Device> device;  // where to; else where it is
};

// How a tensor is to be exported by DLPack: see interop.to_dlpack().
struct DlpackExport {
  bool versioned = true;  // a capsule of DLPack 1, else of DLPack 0
  bool readonly = false;
  std::optional<bool> copy;
  std::optional<c10::Device> device;
  int64_t stream = -1;  // the consumer's, as DLPack has it: -1 if nothing waits
};

class Bridges {
 public:
  // Where a capsule points to it.
  static constexpr const char* module = "interop._bridges";
  static constexpr const char* attribute = "_bridges_3";

  virtual at::Tensor from_numpy(PyObject* array, OnReadonly on_readonly) = 0;
  // The objects are new references.
  virtual PyObject* to_numpy(const at::Tensor& tensor, bool force, bool readonly) = 0;
  virtual PyObject* as_memoryview(const at::Tensor& tensor, bool readonly) = 0;
  virtual at::Tensor from_buffer(PyObject* exporter, const BufferView& view, OnReadonly on_readonly) = 0;

  // See interop/dlpack.h.
  virtual at::Tensor from_dlpack(PyObject* object, const DlpackImport& wanted) = 0;
  virtual PyObject* to_dlpack(const at::Tensor& tensor, const DlpackExport& wanted) = 0;
  virtual at::Tensor from_managed(DLManagedTensorVersioned* managed, const DlpackImport& wanted) = 0;
  virtual DLManagedTensorVersioned* to_managed(const at::Tensor& tensor, bool readonly) = 0;
  virtual const DLPackExchangeAPI* exchange_api() = 0;
  // Without the GIL.
  virtual DLTensor to_dltensor(const at::Tensor& tensor, bool readonly) = 0;

  // An object with the attribute __cuda_array_interface__, and the way back.
  virtual at::Tensor from_cuda_array_interface(PyObject* object, OnReadonly on_readonly) = 0;
  virtual PyObject* to_cuda_array_interface(const at::Tensor& tensor, bool readonly) = 0;

 protected:
  ~Bridges() = default;
};

// With or without the GIL.
inline Bridges& bridges() {
  return interop::detail::find_once<Bridges>("calls the converters of interop");
}

// As the functions of `interop` with these names. All of them need the GIL.

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
