// The only implementation of Bridges: see interop/bridges.h.
#include "interop/bridges.h"

#include "converters.h"
#include "cxx_library.h"
#include "memory.h"
#include "names.h"
#include "python.h"

namespace interop::bridges {

namespace {

class Compiled final : public Bridges {
 public:
  at::Tensor from_numpy(PyObject* array, OnReadonly on_readonly) override {
    return tensor_of_array(array, on_readonly);
  }
  PyObject* to_numpy(const at::Tensor& tensor, bool force, bool readonly) override {
    return array_of_tensor(tensor, force, readonly);
  }
  PyObject* as_memoryview(const at::Tensor& tensor, bool readonly) override {
    return memoryview_of_tensor(tensor, readonly);
  }
  at::Tensor from_buffer(PyObject* exporter, const BufferView& view, OnReadonly on_readonly) override {
    return tensor_of_buffer(exporter, view, on_readonly);
  }
  at::Tensor from_dlpack(PyObject* object, const DlpackImport& wanted) override {
    return tensor_of_dlpack(object, wanted);
  }
  PyObject* to_dlpack(const at::Tensor& tensor, const DlpackExport& wanted) override {
    return capsule_of_tensor(tensor, wanted);
  }
  at::Tensor from_managed(DLManagedTensorVersioned* managed, const DlpackImport& wanted) override {
    return tensor_of_managed(managed, wanted);
  }
  DLManagedTensorVersioned* to_managed(const at::Tensor& tensor, bool readonly) override {
    return managed_of_tensor(tensor, readonly);
  }
  const DLPackExchangeAPI* exchange_api() override {
    return bridges::exchange_api();
  }
  DLTensor to_dltensor(const at::Tensor& tensor, bool readonly) override {
    return dltensor_of_tensor(tensor, readonly);
  }
  at::Tensor from_cuda_array_interface(PyObject* object, OnReadonly on_readonly) override {
    return tensor_of_cuda_array(object, on_readonly);
  }
  PyObject* to_cuda_array_interface(const at::Tensor& tensor, bool readonly) override {
    return cuda_array_of_tensor(tensor, readonly);
  }
};

}  // namespace

PyObject* python::make_capsule() noexcept {
  static Compiled compiled;
  if (!require_cxx_library_of_torch() || names::ready() < 0 || Owner<Hold>::ready() < 0 || ready_buffers() < 0 ||
      ready_dlpack() < 0 || ready_cuda_array() < 0) {
    return nullptr;
  }
  return PyCapsule_New(static_cast<Bridges*>(&compiled), Bridges::attribute, nullptr);
}

}  // namespace interop::bridges
