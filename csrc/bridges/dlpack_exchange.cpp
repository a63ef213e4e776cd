// DLPack's C exchange API for torch.Tensor, with the checks: torch's own table has none for conj, neg and gradients.
// Nothing here waits for streams; whoever calls does.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_ops.h>

#include "dlpack.h"
#include "dlpack_description.h"
#include "dlpack_managed.h"
#include "interop/exceptions.h"
#include "interop/gil.h"
#include "interop/stream.h"
#include "interop/tensor.h"

namespace interop::bridges {

namespace {

// Runs `f`; -1, and a Python error is set, if it throws.
template <class F>
int guarded(F f) noexcept {
  try {
    f();
    return 0;
  } catch (...) {
    translate_exception();
    return -1;
  }
}

const at::Tensor& tensor_of(void* object) {
  auto* given = static_cast<PyObject*>(object);
  if (!is_tensor(given)) {
    PyErr_Format(PyExc_TypeError, "expected a torch.Tensor, got %.200s", Py_TYPE(given)->tp_name);
    throw PythonError();
  }
  return reinterpret_cast<THPVariable*>(given)->cdata;
}

int from_object(void* object, DLManagedTensorVersioned** out) noexcept {
  *out = nullptr;
  return guarded([&] { *out = managed_of_tensor<DLManagedTensorVersioned>(tensor_of(object), false, false); });
}

int to_object(DLManagedTensorVersioned* managed, void** out) noexcept {
  *out = nullptr;
  return guarded([&] { *out = wrap(take_managed(managed, {})); });
}

int view_object(void* object, DLTensor* out) noexcept {
  return guarded([&] { *out = to_dltensor(tensor_of(object), false); });
}

int current_work_stream(DLDeviceType type, int32_t index, void** out) noexcept {
  *out = nullptr;
  return guarded([&] {
    const c10::Device device = torch_device({type, index});
    if (!device.is_cpu()) {
      *out = current_stream(device).native_handle();
    }
  });
}

// Needs no GIL, and sets no Python error.
int allocate(
    DLTensor* prototype,
    DLManagedTensorVersioned** out,
    void* context,
    void (*set_error)(void* context, const char* kind, const char* message)) noexcept {
  *out = nullptr;
  try {
    const Dtype* dtype = find_dtype(prototype->dtype);
    TORCH_CHECK_TYPE(dtype, "torch has no such dtype");
    const at::IntArrayRef sizes(prototype->shape, static_cast<size_t>(prototype->ndim));
    const at::Tensor made = at::_ops::empty_memory_format::call(
        c10::fromIntArrayRefSlow(sizes), dtype->type, c10::kStrided, torch_device(prototype->device), false, {});
    const Gil gil;
    *out = managed_of_tensor<DLManagedTensorVersioned>(made, false, false);
    return 0;
  } catch (const c10::Error& error) {
    set_error(context, "BufferError", error.what_without_backtrace());
  } catch (const std::exception& error) {
    set_error(context, "MemoryError", error.what());
  }
  return -1;
}

}  // namespace

const DLPackExchangeAPI* checked_exchange_api() noexcept {
  static const DLPackExchangeAPI api = {
      .header = {.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, .prev_api = nullptr},
      .managed_tensor_allocator = allocate,
      .managed_tensor_from_py_object_no_sync = from_object,
      .managed_tensor_to_py_object_no_sync = to_object,
      .dltensor_from_py_object_no_sync = view_object,
      .current_work_stream = current_work_stream,
  };
  return &api;
}

}  // namespace interop::bridges
