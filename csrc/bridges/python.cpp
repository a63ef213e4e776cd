// See python.h. Checks the arguments from Python. A returned null or -1 has an error set.
#include "python.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "converters.h"
#include "cuda.h"
#include "interop/check_memory.h"
#include "interop/device_guard.h"
#include "interop/owned_ref.h"
#include "interop/python_types.h"
#include "interop/tensor.h"
#include "names.h"

namespace interop::bridges {

namespace {

// "raise", "share" or "copy".
OnReadonly on_readonly_of(PyObject* text) {
  if (text == names::raise) [[likely]] {
    return OnReadonly::raise;
  }
  const char* characters = PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
  const std::string_view word = characters ? characters : "";
  if (word == "raise" || word == "share" || word == "copy") {
    return word == "raise" ? OnReadonly::raise : word == "share" ? OnReadonly::share : OnReadonly::copy;
  }
  raise_error(PyExc_ValueError, "argument 'on_readonly' must be 'raise', 'share' or 'copy', got %.200R", text);
}

// `accepted` names the valid types in the message.
[[noreturn]] void refuse_type(PyObject* object, const char* argument, const char* accepted) {
  raise_error(PyExc_TypeError, "argument '%s' must be %s, got %.200s", argument, accepted, Py_TYPE(object)->tp_name);
}

int64_t integer_of(PyObject* object, const char* argument, const char* accepted) {
  if (!PyIndex_Check(object)) {
    refuse_type(object, argument, accepted);
  }
  const OwnedRef whole(PyNumber_Index(object));
  if (!whole && PyErr_ExceptionMatches(PyExc_TypeError)) {  // an array of several elements claims to be an integer
    PyErr_Clear();
    refuse_type(object, argument, accepted);
  }
  int overflows = 0;
  const long long value = whole ? PyLong_AsLongLongAndOverflow(whole.get(), &overflows) : -1;
  if (overflows) {
    PyErr_Format(
        PyExc_OverflowError, "argument '%s' must be %s of at most 64 bits, got %.200R", argument, accepted,
        whole.get());
  }
  return checked(value);
}

struct Pair {
  int64_t first;
  int64_t second;
};

Pair pair_of(PyObject* object, const char* argument, const char* accepted) {
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != 2) {
    raise_error(PyExc_TypeError, "argument '%s' must be %s, got %.200R", argument, accepted, object);
  }
  const int64_t first = integer_of(PyTuple_GET_ITEM(object, 0), argument, accepted);
  return {first, integer_of(PyTuple_GET_ITEM(object, 1), argument, accepted)};
}

using Sizes = c10::SmallVector<int64_t, 8>;

Sizes shape_of(PyObject* object) {
  constexpr const char* accepted = "an integer or a sequence of integers";
  if (!PySequence_Check(object) && !PyIndex_Check(object)) {
    refuse_type(object, "shape", accepted);
  }
  // A private tuple, because a list may change while __index__ of its items runs. An array of no dimensions has both
  // protocols, and is no sequence.
  OwnedRef sequence(PySequence_Check(object) ? PySequence_Tuple(object) : nullptr);
  if (!sequence) {
    if (PyErr_Occurred()) {
      if (!PyErr_ExceptionMatches(PyExc_TypeError) || !PyIndex_Check(object)) {
        throw PythonError();
      }
      PyErr_Clear();
    }
    return {integer_of(object, "shape", accepted)};
  }
  Sizes shape;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence.get()); ++i) {
    shape.push_back(integer_of(PyTuple_GET_ITEM(sequence.get(), i), "shape", accepted));
  }
  return shape;
}

std::optional<bool> copy_of(PyObject* object) {
  if (object == Py_None) [[likely]] {
    return std::nullopt;
  }
  if (!PyBool_Check(object)) {
    refuse_type(object, "copy", "True, False or None");
  }
  return object == Py_True;
}

c10::Device device_named(const std::string& text) {
  try {
    return c10::Device(text);
  } catch (const c10::Error& error) {
    TORCH_CHECK_VALUE(
        false, "argument 'device' must be a torch.device, its name or None, got '", text,
        "': ", error.what_without_backtrace());
  }
}

// The requested device.
std::optional<c10::Device> target_of(PyObject* object) {
  if (object == Py_None) [[likely]] {
    return std::nullopt;
  }
  const char* text = PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : nullptr;
  if (!text && !is_device(object)) {
    PyErr_Clear();
    refuse_type(object, "device", "a torch.device, its name or None");
  }
  const c10::Device device = text ? device_named(text) : static_cast<c10::Device>(device_of(object));
  if (device.is_cpu()) {
    return c10::kCPU;
  }
  TORCH_CHECK_WITH(
      BufferError, device.is_cuda(), "argument 'device' must be cpu or cuda, got ", device,
      "; copy the result with .to(device)");
  const auto* found = interop::detail::find_devices(c10::kCUDA);
  TORCH_CHECK_WITH(
      BufferError, found, "argument 'device' is ", device, ", but this torch (" TORCH_VERSION ") finds no CUDA device");
  const c10::Device indexed = device.has_index() ? device : found->getDevice();
  return torch_device({kDLCUDA, indexed.index()}, "device", "request 'cpu'");
}

// The number of a consumer's stream, for a tensor that will be on `device`; -1 if nothing has to wait.
int64_t stream_of(PyObject* object, const c10::Device& device) {
  if (object != Py_None && !PyLong_CheckExact(object)) {
    refuse_type(object, "stream", "an integer or None");
  }
  const int64_t number = object == Py_None ? -1 : integer_of(object, "stream", "an integer or None");
  if (!device.is_cuda()) {
    TORCH_CHECK_VALUE(
        number == -1, "argument 'stream' must be None or -1 for a tensor on ", device, ", which has no streams, got ",
        number);
    return -1;
  }
  if (object == Py_None) {
    return 1;  // "producer must assume the legacy default stream" (array API, __dlpack__)
  }
  if (number != -1) {
    check_stream(number, "argument 'stream'");
  }
  return number;
}

// Calls `convert` with a single positional argument. Any other call goes to `other`.
template <auto convert>
struct FastPath {
  static inline PyObject* other = nullptr;

  static PyObject* call(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) noexcept {
    if (count == 1 && keywords == nullptr) [[likely]] {
      return guarded([&] { return convert(arguments[0]); });
    }
    return PyObject_Vectorcall(other, arguments, count, keywords);
  }
};

// CPython 3.13 without a GIL makes a function immortal, when the first thread starts, only if a module got it this way.
// Threads would count their references to any other function in one place, and wait for one another.
template <auto convert>
PyObject* make_fast(PyObject* function, PyObject* name, PyObject* module, PyObject* text) noexcept {
  FastPath<convert>::other = Py_NewRef(function);  // for good, as the name and the text
  static PyMethodDef methods[] = {
      {PyUnicode_AsUTF8(Py_NewRef(name)),
       reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&FastPath<convert>::call)),
       METH_FASTCALL | METH_KEYWORDS, PyBytes_AS_STRING(Py_NewRef(text))},
      {}};
  PyObject* const importing = PyImport_AddModuleObject(module);  // borrowed from sys.modules
  if (!importing || PyModule_AddFunctions(importing, methods) < 0) {
    return nullptr;
  }
  return PyObject_GetAttr(importing, name);
}

}  // namespace

DLDevice dl_device_of(PyObject* object, const char* argument) {
  constexpr const char* accepted = "a tuple of DLPack's device type and the device's index";
  const Pair given = pair_of(object, argument, accepted);
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  TORCH_CHECK_VALUE(
      0 <= given.first && given.first <= most && 0 <= given.second && given.second <= most, ArgumentName{argument},
      " must be ", accepted, ", got (", given.first, ", ", given.second, ")");
  return {static_cast<DLDeviceType>(given.first), static_cast<int32_t>(given.second)};
}

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
        raise_error(
            PyExc_TypeError,
            "argument 'dtype' must be a torch.dtype such as torch.float32, or None, got %.200R, a %.200s", dtype,
            Py_TYPE(dtype)->tp_name);
      }
      view.dtype = dtype_of(dtype);
    }
    const Sizes sizes = shape == Py_None ? Sizes() : shape_of(shape);
    view.has_shape = shape != Py_None;
    view.shape = sizes;
    view.offset = integer_of(offset, "offset", "an integer");
    return wrap(tensor_of_buffer(exporter, view, on_readonly_of(on_readonly)));
  });
}

PyObject* as_memoryview(PyObject* tensor, bool readonly) noexcept {
  return guarded([&] { return memoryview_of_tensor(tensor_of(tensor), readonly); });
}

PyObject* from_dlpack(PyObject* object, PyObject* device, PyObject* copy, PyObject* on_readonly) noexcept {
  return guarded([&] {
    DlpackImport wanted;
    wanted.on_readonly = on_readonly_of(on_readonly);
    wanted.copy = copy_of(copy);
    wanted.device = target_of(device);
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
      wanted.device = torch_device(dl_device_of(dl_device, "dl_device"), "dl_device", "request the CPU, (1, 0)");
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

PyObject* with_fast_path(PyObject* function, PyObject* name, PyObject* module, PyObject* text) noexcept {
  const auto is = [name](const char* known) { return PyUnicode_CompareWithASCIIString(name, known) == 0; };
  if (is("from_numpy")) {
    constexpr auto convert = [](PyObject* array) { return wrap(tensor_of_array(array, OnReadonly::raise)); };
    return make_fast<convert>(function, name, module, text);
  }
  if (is("to_numpy")) {
    constexpr auto convert = [](PyObject* tensor) { return array_of_tensor(tensor_of(tensor), false, false); };
    return make_fast<convert>(function, name, module, text);
  }
  if (is("as_memoryview")) {
    constexpr auto convert = [](PyObject* tensor) { return memoryview_of_tensor(tensor_of(tensor), false); };
    return make_fast<convert>(function, name, module, text);
  }
  constexpr auto convert = [](PyObject* object) { return wrap(tensor_of_dlpack(object, DlpackImport())); };
  return make_fast<convert>(function, name, module, text);
}

PyObject* tensor_buffer_type() noexcept {
  return Py_NewRef(reinterpret_cast<PyObject*>(bridges::tensor_buffer_type()));
}

int set_protocol(int wanted) noexcept {
  return bridges::set_protocol(static_cast<Protocol>(wanted));
}

int protocol() noexcept {
  return static_cast<int>(bridges::protocol());
}

}  // namespace python

}  // namespace interop::bridges
