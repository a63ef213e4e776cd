// The one Bridges there is, and what interop/_bridges.pyx calls. See interop/bridges.h.
#include "interop/bridges.h"

#include <c10/util/SmallVector.h>

#include "arguments.h"
#include "buffer.h"
#include "cuda_array.h"
#include "dlpack.h"
#include "dlpack_description.h"
#include "dlpack_managed.h"
#include "dlpack_owner.h"
#include "exporter.h"
#include "interop/python_types.h"
#include "interop/tensor.h"
#include "numpy.h"
#include "owner_object.h"
#include "protocol.h"
#include "python.h"
#include "reference.h"

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
    return take_managed(managed, wanted);
  }
  DLManagedTensorVersioned* to_managed(const at::Tensor& tensor, bool readonly) override {
    return managed_of_tensor<DLManagedTensorVersioned>(tensor, readonly, false);
  }
  const DLPackExchangeAPI* exchange_api() override {
    return checked_exchange_api();
  }
  DLTensor to_dltensor(const at::Tensor& tensor, bool readonly) override {
    return bridges::to_dltensor(tensor, readonly);
  }
  at::Tensor from_cuda_array_interface(PyObject* object, OnReadonly on_readonly) override {
    return tensor_of_cuda_array(object, on_readonly);
  }
  PyObject* to_cuda_array_interface(const at::Tensor& tensor, bool readonly) override {
    return cuda_array_of_tensor(tensor, readonly);
  }
};

c10::SmallVector<int64_t, 8> shape_of(PyObject* object) {
  constexpr const char* accepted = "a sequence of integers, or one";
  if (PyIndex_Check(object)) {
    return {integer_of(object, "shape", accepted)};
  }
  if (!PySequence_Check(object)) {
    PyErr_Format(PyExc_TypeError, "argument 'shape' must be %s, got %.200s", accepted, Py_TYPE(object)->tp_name);
    throw PythonError();
  }
  // A tuple of its own: a list may change while its items say what integers they are.
  const Reference sequence(PySequence_Tuple(object));
  if (!sequence) {
    throw PythonError();
  }
  c10::SmallVector<int64_t, 8> shape;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence.get()); ++i) {
    shape.push_back(integer_of(PyTuple_GET_ITEM(sequence.get(), i), "shape", accepted));
  }
  return shape;
}

}  // namespace

namespace python {

PyObject* from_numpy(PyObject* array, PyObject* on_readonly) noexcept {
  return guarded([&] { return wrap(tensor_of_array(array, on_readonly_of(on_readonly))); });
}

PyObject* to_numpy(PyObject* tensor, bool force, bool readonly) noexcept {
  return guarded([&] { return array_of_tensor(tensor_of(tensor), force, readonly); });
}

PyObject* from_buffer(
    PyObject* exporter, PyObject* dtype, PyObject* shape, PyObject* offset, PyObject* on_readonly) noexcept {
  return guarded([&] {
    BufferView view;
    if (dtype != Py_None) {
      if (!is_dtype(dtype)) {
        PyErr_Format(
            PyExc_TypeError,
            "argument 'dtype' must be a torch.dtype such as torch.float32, or None, got %.200R, a %.200s",
            dtype,
            Py_TYPE(dtype)->tp_name);
        throw PythonError();
      }
      view.dtype = dtype_of(dtype);
    }
    const auto sizes = shape == Py_None ? c10::SmallVector<int64_t, 8>() : shape_of(shape);
    view.has_shape = shape != Py_None;
    view.shape = sizes;
    view.offset = integer_of(offset, "offset", "an integer");
    return wrap(tensor_of_buffer(exporter, view, on_readonly_of(on_readonly)));
  });
}

PyObject* as_memoryview(PyObject* tensor, bool readonly) noexcept {
  return guarded([&] { return memoryview_of_tensor(tensor_of(tensor), readonly); });
}

PyObject* tensor_buffer_type() noexcept {
  return Py_XNewRef(reinterpret_cast<PyObject*>(ready_tensor_buffer()));
}

int enable_protocol(bool enable) noexcept {
  return bridges::enable_protocol(enable);
}

bool protocol_is_enabled() noexcept {
  return bridges::protocol_is_enabled();
}

PyObject* make_capsule() noexcept {
  static Compiled compiled;
  if (ready_owner_object() < 0 || ready_buffer_owner() < 0 || ready_dlpack_owner() < 0 || ready_dlpack() < 0 ||
      ready_cuda_array() < 0) {
    return nullptr;
  }
  return PyCapsule_New(static_cast<Bridges*>(&compiled), Bridges::attribute, nullptr);
}

}  // namespace python

}  // namespace interop::bridges
