// The converters by protocol: `tensor_of_...` imports, `..._of_tensor` exports. They return new references and need
// the GIL unless they say otherwise. They throw; PythonError means that a Python error is set.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <ATen/dlpack.h>
#include <c10/core/Device.h>

#include <type_traits>

#include "interop/bridges.h"
#include "interop/exceptions.h"
#include "interop/tensor.h"

namespace interop::bridges {

// NumPy: numpy.cpp. `argument` names the array in messages.
at::Tensor tensor_of_array(PyObject* array, OnReadonly on_readonly, const char* argument = "array");
PyObject* array_of_tensor(const at::Tensor& tensor, bool force, bool read_only);
// Whether the object is a numpy.ndarray, not a subclass.
bool is_array(PyObject* object);
// Raises ValueError for an array with masked elements, because its memory lacks the mask.
void check_unmasked(PyObject* object, const char* argument);

// The buffer protocol: buffer.cpp.
at::Tensor tensor_of_buffer(PyObject* exporter, const BufferView& wanted, OnReadonly on_readonly);
// A memoryview of a TensorBuffer. Increments the version if the memory is writable.
PyObject* memoryview_of_tensor(const at::Tensor& tensor, bool read_only);
// Borrowed.
PyTypeObject* tensor_buffer_type() noexcept;
// Whether torch.Tensor and its subclasses export buffers, and when an export increments the tensor's version: at the
// end if the memory has changed, or at the beginning if the export is writable.
enum class Protocol { off, found, asked };
Protocol protocol() noexcept;
// 0, or -1 with an error set.
int set_protocol(Protocol wanted) noexcept;

// DLPack: dlpack.cpp.
// From a capsule, a torch.Tensor, or an object that has a C exchange API or the method __dlpack__.
at::Tensor tensor_of_dlpack(PyObject* object, const DlpackImport& wanted);
// Takes ownership of `managed`, and calls its deleter on failure.
at::Tensor tensor_of_managed(DLManagedTensorVersioned* managed, const DlpackImport& wanted);
PyObject* capsule_of_tensor(const at::Tensor& tensor, const DlpackExport& wanted);
// Owns the tensor's memory, not the tensor. The storage is pinned for good. The deleter needs no GIL.
DLManagedTensorVersioned* managed_of_tensor(const at::Tensor& tensor, bool read_only);
// See interop::dlpack::to_dltensor(). Needs no GIL.
DLTensor dltensor_of_tensor(const at::Tensor& tensor, bool read_only);
const DLPackExchangeAPI* exchange_api() noexcept;
// torch's device for a device of DLPack. Raises BufferError if this torch has no such device.
c10::Device torch_device(
    const DLDevice& device,
    const char* argument = "obj",
    const char* instead = "move it to the CPU first, or pass device='cpu'");
// Parses a result of __dlpack_device__(): python.cpp.
DLDevice dl_device_of(PyObject* object, const char* argument);

// The CUDA array interface: cuda_array.cpp.
at::Tensor tensor_of_cuda_array(PyObject* object, OnReadonly on_readonly);
PyObject* cuda_array_of_tensor(const at::Tensor& tensor, bool read_only);

// Call these once, when the module is imported. They return 0, or -1 with an error set.
int ready_buffers() noexcept;
int ready_dlpack() noexcept;
int ready_cuda_array() noexcept;

// Calls `f` and follows Python's error convention: an exception becomes a Python error, and the result is null. If
// `f` returns void, the result is 0, or -1 on error.
template <class F>
auto guarded(F f) noexcept {
  using Result = std::invoke_result_t<F>;
  try {
    if constexpr (std::is_void_v<Result>) {
      f();
      return 0;
    } else {
      return f();
    }
  } catch (...) {
    translate_exception();
    if constexpr (std::is_void_v<Result>) {
      return -1;
    } else {
      return Result(nullptr);
    }
  }
}

// The tensor in the Python argument `tensor`, borrowed.
inline const at::Tensor& tensor_of(PyObject* object) {
  if (!is_tensor(object)) [[unlikely]] {
    raise_error(
        PyExc_TypeError, "argument 'tensor' must be a torch.Tensor, got %.200s; make one with torch.as_tensor(tensor)",
        Py_TYPE(object)->tp_name);
  }
  return reinterpret_cast<THPVariable*>(object)->cdata;
}

}  // namespace interop::bridges
