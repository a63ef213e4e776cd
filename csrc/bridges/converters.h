// The converters, protocol by protocol: `tensor_of_...` imports, `..._of_tensor` exports. Objects that are returned are
// new references. All need the GIL unless they say otherwise. They throw: PythonError where a Python error is set.
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

// NumPy: numpy.cpp. `argument` is what messages call the array.
at::Tensor tensor_of_array(PyObject* array, OnReadonly on_readonly, const char* argument = "array");
PyObject* array_of_tensor(const at::Tensor& tensor, bool force, bool read_only);
// Whether it is a numpy.ndarray, and not of a subclass.
bool is_array(PyObject* object);
// Raises ValueError for an array with masked elements: its memory would be that without the mask.
void check_unmasked(PyObject* object, const char* argument);

// The buffer protocol: buffer.cpp.
at::Tensor tensor_of_buffer(PyObject* exporter, const BufferView& wanted, OnReadonly on_readonly);
// A memoryview of a TensorBuffer. It counts up the version if it can be written to.
PyObject* memoryview_of_tensor(const at::Tensor& tensor, bool read_only);
// Borrowed.
PyTypeObject* tensor_buffer_type() noexcept;
// Whether torch.Tensor and its subclasses export buffers, and when a tensor's version counts an export: if its memory
// was found changed at the end, or at the beginning if it may be written to.
enum class Protocol { off, found, asked };
Protocol protocol() noexcept;
// 0, or -1 with an error set.
int set_protocol(Protocol wanted) noexcept;

// DLPack: dlpack.cpp.
// Of a capsule, of a torch.Tensor, or of an object that has a C exchange API or the method __dlpack__.
at::Tensor tensor_of_dlpack(PyObject* object, const DlpackImport& wanted);
// Takes over `managed`, and calls its deleter itself if that fails.
at::Tensor tensor_of_managed(DLManagedTensorVersioned* managed, const DlpackImport& wanted);
PyObject* capsule_of_tensor(const at::Tensor& tensor, const DlpackExport& wanted);
// Owns the tensor's memory, which is pinned for good, and not the tensor. Its deleter needs no GIL.
DLManagedTensorVersioned* managed_of_tensor(const at::Tensor& tensor, bool read_only);
// See interop::dlpack::to_dltensor(). Needs no GIL.
DLTensor dltensor_of_tensor(const at::Tensor& tensor, bool read_only);
const DLPackExchangeAPI* exchange_api() noexcept;
// The device that DLPack means. Raises BufferError if this torch has none such.
c10::Device torch_device(
    const DLDevice& device,
    const char* argument = "obj",
    const char* instead = "bring it to the CPU first, or pass device='cpu'");
// As __dlpack_device__() has it: python.cpp.
DLDevice dl_device_of(PyObject* object, const char* argument);

// The CUDA array interface: cuda_array.cpp.
at::Tensor tensor_of_cuda_array(PyObject* object, OnReadonly on_readonly);
PyObject* cuda_array_of_tensor(const at::Tensor& tensor, bool read_only);

// To be called once, when the module is imported. -1, and an error is set, if they fail.
int ready_buffers() noexcept;
int ready_dlpack() noexcept;
int ready_cuda_array() noexcept;

// Calls `f` as Python's functions are: what it throws becomes a Python error, and the result null, or -1 where `f`
// returns nothing and 0 says that all went well.
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

// Of the object that Python calls `tensor`, borrowed.
inline const at::Tensor& tensor_of(PyObject* object) {
  if (!is_tensor(object)) [[unlikely]] {
    raise_error(
        PyExc_TypeError, "argument 'tensor' must be a torch.Tensor, got %.200s; make one with torch.as_tensor(tensor)",
        Py_TYPE(object)->tp_name);
  }
  return reinterpret_cast<THPVariable*>(object)->cdata;
}

}  // namespace interop::bridges
