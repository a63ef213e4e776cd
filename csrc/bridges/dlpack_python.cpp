// The arguments that Python gives for exchanges by DLPack and by the CUDA array interface.
#include <c10/util/Exception.h>

#include <optional>
#include <string>

#include "arguments.h"
#include "cuda_array.h"
#include "dlpack.h"
#include "dlpack_managed.h"
#include "dlpack_stream.h"
#include "interop/device_guard.h"
#include "interop/python_types.h"
#include "interop/tensor.h"
#include "python.h"

namespace interop::bridges {

namespace {

std::optional<bool> copy_of(PyObject* object) {
  if (object == Py_None) [[likely]] {
    return std::nullopt;
  }
  if (!PyBool_Check(object)) {
    PyErr_Format(PyExc_TypeError, "argument 'copy' must be True, False or None, got %.200s", Py_TYPE(object)->tp_name);
    throw PythonError();
  }
  return object == Py_True;
}

std::optional<c10::Device> device_of_argument(PyObject* object) {
  if (object == Py_None) [[likely]] {
    return std::nullopt;
  }
  const char* text = PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : nullptr;
  if (!text && !is_device(object)) {
    PyErr_Clear();
    PyErr_Format(
        PyExc_TypeError,
        "argument 'device' must be a torch.device, its name or None, got %.200s",
        Py_TYPE(object)->tp_name);
    throw PythonError();
  }
  const c10::Device device = text ? c10::Device(std::string(text)) : static_cast<c10::Device>(device_of(object));
  if (device.is_cpu()) {
    return c10::kCPU;
  }
  TORCH_CHECK_WITH(
      BufferError,
      device.is_cuda(),
      "argument 'device' must be cpu or cuda, got ",
      device,
      "; copy the result with .to(device)");
  const auto* found = interop::detail::find_devices(c10::kCUDA);
  TORCH_CHECK_WITH(
      BufferError, found, "argument 'device' is ", device, ", and this torch (" TORCH_VERSION ") finds no CUDA device");
  const c10::Device indexed = device.has_index() ? device : found->getDevice();
  return torch_device({kDLCUDA, indexed.index()}, "device", "ask for 'cpu'");
}

// What a consumer's stream means for a tensor that will be on `device`; -1 if nothing has to wait.
int64_t stream_of(PyObject* object, const c10::Device& device) {
  if (object != Py_None && !PyLong_CheckExact(object)) {
    PyErr_Format(PyExc_TypeError, "argument 'stream' must be an integer or None, got %.200s", Py_TYPE(object)->tp_name);
    throw PythonError();
  }
  const int64_t number = object == Py_None ? -1 : integer_of(object, "stream", "an integer or None");
  if (!device.is_cuda()) {
    TORCH_CHECK_VALUE(
        number == -1,
        "argument 'stream' must be None or -1 for a tensor on ",
        device,
        ", which has no streams, got ",
        number);
    return -1;
  }
  if (object == Py_None) {
    return 1;  // whoever says nothing uses the legacy default stream
  }
  if (number != -1) {
    check_stream(number, "argument 'stream'");
  }
  return number;
}

}  // namespace

namespace python {

PyObject* from_dlpack(PyObject* object, PyObject* device, PyObject* copy, PyObject* on_readonly) noexcept {
  return guarded([&] {
    DlpackImport wanted;
    wanted.on_readonly = on_readonly_of(on_readonly);
    wanted.copy = copy_of(copy);
    wanted.device = device_of_argument(device);
    return wrap(tensor_of_dlpack(object, wanted));
  });
}

PyObject* to_dlpack(
    PyObject* object,
    PyObject* stream,
    PyObject* max_version,
    PyObject* dl_device,
    PyObject* copy,
    bool readonly) noexcept {
  return guarded([&] {
    const at::Tensor& tensor = tensor_of(object);
    DlpackExport wanted;
    wanted.versioned =
        max_version != Py_None && pair_of(max_version, "max_version", "a tuple of two integers").first >= 1;
    wanted.readonly = readonly;
    wanted.copy = copy_of(copy);
    if (dl_device != Py_None) {
      wanted.device = torch_device(dl_device_of(dl_device, "dl_device"), "dl_device", "ask for the CPU, (1, 0)");
    }
    TORCH_CHECK_TYPE(tensor.defined(), "argument 'tensor' must be a tensor, got an undefined one (None)");
    wanted.stream = stream_of(stream, wanted.device.value_or(tensor.device()));
    return capsule_of_tensor(tensor, wanted);
  });
}

PyObject* from_cuda_array_interface(PyObject* object, PyObject* on_readonly) noexcept {
  return guarded([&] { return wrap(tensor_of_cuda_array(object, on_readonly_of(on_readonly))); });
}

PyObject* to_cuda_array_interface(PyObject* tensor, bool readonly) noexcept {
  return guarded([&] { return cuda_array_of_tensor(tensor_of(tensor), readonly); });
}

}  // namespace python

}  // namespace interop::bridges
