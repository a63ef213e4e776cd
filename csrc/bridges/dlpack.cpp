// See dlpack.h.
#include "dlpack.h"

#include <ATen/core/TensorBody.h>
#include <c10/util/Exception.h>

#include <string>
#include <utility>

#include "arguments.h"
#include "copy.h"
#include "dlpack_description.h"
#include "dlpack_managed.h"
#include "dlpack_stream.h"
#include "interop/device_guard.h"
#include "interop/error_in_flight.h"
#include "interop/tensor.h"
#include "numpy.h"
#include "reference.h"

namespace interop::bridges {

namespace {

constexpr const char* argument = "obj";

// Made by ready_dlpack(): static variables of functions are not for objects whose making may collect garbage, because
// the lock of their initialisation is held meanwhile.
PyObject* our_version = nullptr;
PyObject* only_max_version = nullptr;

PyObject* interned(const char* text) {
  PyObject* made = PyUnicode_InternFromString(text);
  if (!made) {
    throw PythonError();
  }
  return made;
}

// An attribute of a type, borrowed; null, and no error, if it has none.
PyObject* of_type(PyTypeObject* type, PyObject* name) noexcept {
  return _PyType_Lookup(type, name);
}

// Another tensor over the same storage, with the same version: writes to one are seen by those who saved the other.
at::Tensor alias(const at::Tensor& tensor, const DlpackImport& wanted) {
  const Described described = describe(tensor, argument, false);  // also for a copy, which would lose the gradient too
  check_wanted(wanted, tensor.device(), is_read_only(*described.exported.storage), false);
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  return as_wanted(at::Tensor(impl->shallow_copy_and_detach(impl->version_counter(), true)), wanted);
}

// NumPy's arrays are what they say, and on the CPU: to ask their methods for a capsule takes as long as all the rest.
at::Tensor tensor_of_plain_array(PyObject* array, const DlpackImport& wanted) {
  at::Tensor shared = detail::as_buffer_error([&] { return tensor_of_array(array, OnReadonly::share, argument); });
  check_wanted(wanted, c10::kCPU, is_read_only(*shared.storage().unsafeGetStorageImpl()), false);
  return as_wanted(std::move(shared), wanted);
}

// Consumes a capsule. Until it is certain that nothing is wrong with it, it stays as it is.
template <class Managed>
at::Tensor consume(PyObject* capsule, const DlpackImport& wanted) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Kind<Managed>::name));
  if (!managed) {
    throw PythonError();
  }
  return tensor_of_managed(managed, wanted, [capsule] {
    if (PyCapsule_SetName(capsule, Kind<Managed>::used) < 0) {
      throw PythonError();
    }
  });
}

// For a message, which must be UTF-8.
std::string printable(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') {
      c = '?';
    }
  }
  return text;
}

at::Tensor tensor_of_capsule(PyObject* capsule, const DlpackImport& wanted) {
  if (PyCapsule_IsValid(capsule, Kind<DLManagedTensorVersioned>::name)) {
    return consume<DLManagedTensorVersioned>(capsule, wanted);
  }
  if (PyCapsule_IsValid(capsule, Kind<DLManagedTensor>::name)) {
    return consume<DLManagedTensor>(capsule, wanted);
  }
  const char* name = PyCapsule_GetName(capsule);
  PyErr_Clear();
  const bool used = PyCapsule_IsValid(capsule, Kind<DLManagedTensorVersioned>::used) ||
                    PyCapsule_IsValid(capsule, Kind<DLManagedTensor>::used);
  TORCH_CHECK_VALUE(!used, "argument 'obj' must be a capsule that was not used yet; make another one");
  TORCH_CHECK_TYPE(
      false,
      "argument 'obj' must be a capsule with the name dltensor or dltensor_versioned, got one with ",
      name ? printable(name) : "none");
}

// Whether a class that inherits `table` has a __dlpack__ of its own, which knows more than the table of its parent.
bool has_another_method(PyTypeObject* type, PyObject* attribute, PyObject* table) {
  static PyObject* const method = interned("__dlpack__");
  PyTypeObject* parent = type;
  while (parent->tp_base && of_type(parent->tp_base, attribute) == table) {
    parent = parent->tp_base;
  }
  return parent != type && of_type(parent, method) != of_type(type, method);
}

// The newest table that we can read, or null.
const DLPackExchangeAPI* exchange_api_of(PyTypeObject* type) {
  static PyObject* const attribute = interned("__dlpack_c_exchange_api__");
  PyObject* capsule = of_type(type, attribute);
  if (!capsule || !PyCapsule_IsValid(capsule, "dlpack_exchange_api") || has_another_method(type, attribute, capsule))
      [[likely]] {
    return nullptr;
  }
  auto* header = static_cast<DLPackExchangeAPIHeader*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  while (header && header->version.major != DLPACK_MAJOR_VERSION) {
    header = header->prev_api;
  }
  auto* api = reinterpret_cast<DLPackExchangeAPI*>(header);
  return api && api->managed_tensor_from_py_object_no_sync ? api : nullptr;
}

// Such functions set an error, or should.
void check_status(int status, const char* function) {
  if (status == 0) [[likely]] {
    return;
  }
  if (!PyErr_Occurred()) {
    PyErr_Format(
        PyExc_BufferError, "argument 'obj': %s of its DLPack exchange API failed and did not say why", function);
  }
  throw PythonError();
}

// The current stream waits for the one on which the producer works.
void wait_for_producer(const DLPackExchangeAPI& api, const DLDevice& where) {
  const c10::Device device = torch_device(where);
  if (device.is_cpu() || !api.current_work_stream) {
    return;
  }
  void* stream = nullptr;
  check_status(api.current_work_stream(where.device_type, where.device_id, &stream), "current_work_stream");
  const auto number = reinterpret_cast<intptr_t>(stream);
  wait_for_stream(device, number == 0 ? 1 : number);
}

at::Tensor tensor_of_exchange(PyObject* object, const DLPackExchangeAPI& api, const DlpackImport& wanted) {
  DLManagedTensorVersioned* managed = nullptr;
  check_status(api.managed_tensor_from_py_object_no_sync(object, &managed), "managed_tensor_from_py_object_no_sync");
  TORCH_CHECK_WITH(BufferError, managed, "argument 'obj': its DLPack exchange API gave no tensor");
  return take_managed(managed, wanted, [&] { wait_for_producer(api, managed->dl_tensor.device); });
}

// While an error is set.
bool has_attribute(PyObject* object, PyObject* name) {
  const ErrorInFlight error;
  return PyObject_HasAttr(object, name);
}

// What __dlpack_device__() says.
DLDevice device_of_object(PyObject* object) {
  static PyObject* const method = interned("__dlpack_device__");
  Reference pair(PyObject_VectorcallMethod(method, &object, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
  if (!pair) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError) && !has_attribute(object, method)) {
      PyErr_Format(
          PyExc_TypeError,
          "argument 'obj' must be a DLPack capsule, a torch.Tensor or an object with the methods __dlpack__ and "
          "__dlpack_device__, got %.200s; try torch.as_tensor(obj)",
          Py_TYPE(object)->tp_name);
    }
    throw PythonError();
  }
  if (!PyTuple_Check(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2) {
    PyErr_Format(
        PyExc_TypeError, "argument 'obj': __dlpack_device__() must return two integers, got %.200R", pair.get());
    throw PythonError();
  }
  return dl_device_of(pair.get(), "obj");
}

// The keywords of a call of __dlpack__, and their values.
class Keywords {
 public:
  void add(const char* name, PyObject* value) {
    if (!value) {
      throw PythonError();
    }
    names_[count_] = name;
    values_[++count_] = value;
  }
  ~Keywords() {
    for (size_t i = 1; i <= count_; ++i) {
      Py_DECREF(values_[i]);
    }
  }

  // Calls the method; null if it raises.
  PyObject* call(PyObject* object, PyObject* method) {
    values_[0] = object;
    if (count_ == 0) {
      return PyObject_VectorcallMethod(method, values_, 1, nullptr);
    }
    if (count_ == 1 && names_[0] == max_version) [[likely]] {
      return PyObject_VectorcallMethod(method, values_, 1, only_max_version);
    }
    Reference names(PyTuple_New(static_cast<Py_ssize_t>(count_)));
    if (!names) {
      return nullptr;
    }
    for (size_t i = 0; i < count_; ++i) {
      PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), interned(names_[i]));
    }
    return PyObject_VectorcallMethod(method, values_, 1, names.get());
  }

  static constexpr const char* max_version = "max_version";

 private:
  size_t count_ = 0;
  const char* names_[4];
  PyObject* values_[5];  // the object, and those
};

bool is_cpu(const DLDevice& device) noexcept {
  return device.device_type == kDLCPU || device.device_type == kDLCUDAHost || device.device_type == kDLROCMHost;
}

bool is_cuda(const DLDevice& device) noexcept {
  return device.device_type == kDLCUDA || device.device_type == kDLCUDAManaged;
}

// What __dlpack__() returns. Producers of before DLPack 1 do not know all keywords, and raise TypeError.
PyObject* capsule_of_object(PyObject* object, const DLDevice& from, const DlpackImport& wanted) {
  static PyObject* const method = interned("__dlpack__");
  const bool reachable = is_cpu(from) || (is_cuda(from) && interop::detail::find_devices(c10::kCUDA));
  Keywords keywords;
  keywords.add(Keywords::max_version, Py_NewRef(our_version));
  PyObject* stream = nullptr;
  if (is_cuda(from) && reachable) {
    stream = PyLong_FromLongLong(current_stream_number(torch_device(from)));
    keywords.add("stream", Py_XNewRef(stream));
  }
  const Reference keep(stream);
  if (!reachable && wanted.device) {
    // torch cannot bring it over, so its owner has to.
    const DLDevice to = dl_device(*wanted.device);
    keywords.add("dl_device", Py_BuildValue("(ii)", static_cast<int>(to.device_type), static_cast<int>(to.device_id)));
  }
  if (wanted.copy && (!*wanted.copy || !reachable)) {
    keywords.add("copy", Py_NewRef(*wanted.copy ? Py_True : Py_False));
  }
  PyObject* capsule = keywords.call(object, method);
  if (!capsule && reachable && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    Keywords old;
    if (stream) {
      old.add("stream", Py_NewRef(stream));
    }
    capsule = old.call(object, method);
  }
  if (!capsule) {
    throw PythonError();
  }
  return capsule;
}

at::Tensor tensor_of_object(PyObject* object, const DlpackImport& wanted) {
  check_unmasked(object, argument);
  const DLDevice from = device_of_object(object);
  if (!wanted.device) {
    torch_device(from);  // before its owner does any work
  }
  const Reference capsule(capsule_of_object(object, from, wanted));
  if (!PyCapsule_CheckExact(capsule.get())) {
    PyErr_Format(
        PyExc_TypeError,
        "argument 'obj': __dlpack__() must return a capsule, got %.200s",
        Py_TYPE(capsule.get())->tp_name);
    throw PythonError();
  }
  return tensor_of_capsule(capsule.get(), wanted);
}

template <class Managed>
void end_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, Kind<Managed>::name)) {
    return;  // it was consumed
  }
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Kind<Managed>::name));
  managed->deleter(managed);
}

template <class Managed>
PyObject* new_capsule(const at::Tensor& tensor, bool read_only, bool copied) {
  Managed* managed = managed_of_tensor<Managed>(tensor, read_only, copied);
  PyObject* capsule = PyCapsule_New(managed, Kind<Managed>::name, &end_capsule<Managed>);
  if (!capsule) {
    managed->deleter(managed);
    throw PythonError();
  }
  return capsule;
}

}  // namespace

int ready_dlpack() noexcept {
  if (!our_version) {
    our_version = Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
  }
  if (!only_max_version) {
    only_max_version = Py_BuildValue("(s)", Keywords::max_version);
  }
  return our_version && only_max_version ? 0 : -1;
}

at::Tensor take_managed(
    DLManagedTensorVersioned* managed, const DlpackImport& wanted, c10::function_ref<void()> before) {
  bool taken = false;
  try {
    return tensor_of_managed(managed, wanted, [&] {
      before();
      taken = true;
    });
  } catch (...) {
    if (!taken && managed->deleter) {
      const ErrorInFlight error;
      managed->deleter(managed);
    }
    throw;
  }
}

at::Tensor tensor_of_dlpack(PyObject* object, const DlpackImport& wanted) {
  if (PyCapsule_CheckExact(object)) {
    return tensor_of_capsule(object, wanted);
  }
  if (is_array(object)) {
    return tensor_of_plain_array(object, wanted);
  }
  if (is_tensor(object)) {
    // A subclass may have a way of its own.
    static PyObject* const method = interned("__dlpack__");
    auto* tensor_type = reinterpret_cast<PyTypeObject*>(THPVariableClass);
    if (Py_TYPE(object) == tensor_type || of_type(Py_TYPE(object), method) == of_type(tensor_type, method)) {
      return alias(reinterpret_cast<THPVariable*>(object)->cdata, wanted);
    }
  } else if (const DLPackExchangeAPI* api = exchange_api_of(Py_TYPE(object))) {
    return tensor_of_exchange(object, *api, wanted);
  }
  return tensor_of_object(object, wanted);
}

PyObject* capsule_of_tensor(const at::Tensor& given, const DlpackExport& wanted) {
  const bool moves = wanted.device && *wanted.device != given.device();
  const bool copies = moves || wanted.copy.value_or(false);
  TORCH_CHECK_VALUE(
      !moves || wanted.copy.value_or(true),
      "argument 'copy' is False, but to bring 'tensor' from ",
      given.device(),
      " to ",
      wanted.device.value_or(c10::kCPU),
      " is to copy it; pass copy=None");
  at::Tensor copied;
  if (copies) {
    describe(given, "tensor", wanted.readonly);
    copied = moves ? copy_on(given.detach(), *wanted.device) : contiguous_copy(given.detach());
  }
  const at::Tensor& tensor = copies ? copied : given;
  Reference capsule(
      wanted.versioned ? new_capsule<DLManagedTensorVersioned>(tensor, wanted.readonly, copies)
                       : new_capsule<DLManagedTensor>(tensor, wanted.readonly, copies));
  if (tensor.is_cuda() && wanted.stream != -1) {
    let_stream_wait(tensor.device(), wanted.stream);
  }
  return capsule.give();
}

}  // namespace interop::bridges
