// Tensors and the CUDA array interface, version 3.
#include <Python.h>
#include <structmember.h>

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>

#include <bit>
#include <cctype>
#include <cstddef>
#include <string>
#include <utility>

#include "check_export.h"
#include "converters.h"
#include "cuda.h"
#include "import.h"
#include "interop/bridges/dtypes.h"
#include "interop/device_guard.h"
#include "interop/free_threading.h"
#include "interop/owned_ref.h"
#include "memory.h"

namespace interop::bridges {

namespace {

constexpr Subject subject{"obj", "copy it in the library that made it"};
constexpr int newest = 3;
constexpr const char* attribute = "__cuda_array_interface__";

using Numbers = c10::SmallVector<int64_t, 8>;

// Null if the entry is missing or None. The caller owns the dictionary and may change it in the meantime.
OwnedRef entry(PyObject* interface, const char* name) noexcept {
  const SharedRef found = dict_item(interface, name);
  return OwnedRef(found.get() == Py_None ? nullptr : Py_XNewRef(found.get()));
}

[[noreturn]] void refuse(const char* name, const char* accepted, const OwnedRef& given) {
  raise_error(
      PyExc_TypeError, "argument 'obj' must have %s for '%s' in its %s, got %.200R", accepted, name, attribute,
      given ? given.get() : Py_None);
}

[[noreturn]] void refuse_size(const char* name, PyObject* number) {
  PyErr_Clear();
  raise_error(
      PyExc_OverflowError, "argument 'obj' must have integers of 64 bits for '%s' in its %s, got %.200R", name,
      attribute, number);
}

int64_t number(PyObject* object, const char* name) {
  const OwnedRef whole(checked(PyNumber_Index(object)));
  int overflows = 0;
  const long long value = PyLong_AsLongLongAndOverflow(whole.get(), &overflows);
  if (overflows) {
    refuse_size(name, whole.get());
  }
  return value;
}

Numbers numbers(PyObject* interface, const char* name) {
  const OwnedRef given = entry(interface, name);
  if (!given || !PyTuple_Check(given.get())) {
    refuse(name, "a tuple of integers", given);
  }
  Numbers result;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given.get()); ++i) {
    PyObject* one = PyTuple_GET_ITEM(given.get(), i);
    if (!PyIndex_Check(one)) {
      refuse(name, "a tuple of integers", given);
    }
    result.push_back(number(one, name));
  }
  return result;
}

int64_t integer(PyObject* interface, const char* name) {
  const OwnedRef given = entry(interface, name);
  if (!given || !PyLong_Check(given.get()) || PyBool_Check(given.get())) {
    refuse(name, "an integer", given);
  }
  return number(given.get(), name);
}

// A typestr such as <f4: byte order, kind, bytes.
const Dtype& dtype_of(PyObject* interface) {
  const OwnedRef given = entry(interface, "typestr");
  Py_ssize_t length = 0;
  const char* text = given && PyUnicode_Check(given.get()) ? PyUnicode_AsUTF8AndSize(given.get(), &length) : nullptr;
  if (!text || length < 3 || strlen(text) != static_cast<size_t>(length) || !isdigit(text[2])) {
    PyErr_Clear();
    refuse("typestr", "a type such as '<f4'", given);
  }
  char* end = nullptr;
  const auto size = strtoul(text + 2, &end, 10);
  const Dtype* dtype = *end == '\0' ? find_dtype(text[1], size) : nullptr;
  TORCH_CHECK_TYPE(
      dtype, "argument 'obj' must have a dtype that torch has, got the typestr '", text, "'",
      text[1] == 'V' ? "; convert structured elements field by field, and bfloat16 as a view of uint16, then "
                       ".view(torch.bfloat16) of the tensor"
                     : "; convert it in the library that made it");
  constexpr char ours = std::endian::native == std::endian::little ? '<' : '>';
  TORCH_CHECK_VALUE(
      text[0] == ours || text[0] == '=' || (text[0] == '|' && size == 1),
      "argument 'obj' must have the byte order of this machine, got the typestr '", text,
      "'; convert it in the library that made it");
  return *dtype;
}

struct Data {
  void* pointer;
  bool read_only;
};

Data data_of(PyObject* interface) {
  const OwnedRef given = entry(interface, "data");
  if (!given || !PyTuple_Check(given.get()) || PyTuple_GET_SIZE(given.get()) != 2 ||
      !PyLong_Check(PyTuple_GET_ITEM(given.get(), 0))) {
    refuse("data", "a tuple of an address and a truth value", given);
  }
  PyObject* number = PyTuple_GET_ITEM(given.get(), 0);
  const auto address = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred()) {
    refuse_size("data", number);
  }
  const int read_only = checked(PyObject_IsTrue(PyTuple_GET_ITEM(given.get(), 1)));
  return {reinterpret_cast<void*>(static_cast<uintptr_t>(address)), read_only != 0};
}

// The producer's stream, or 0 if there is nothing to wait for.
int64_t stream_of(PyObject* interface, int64_t version) {
  if (version < 3 || !entry(interface, "stream")) {
    return 0;
  }
  const int64_t stream = integer(interface, "stream");
  check_stream(stream, "argument 'obj': the stream in its __cuda_array_interface__");
  return stream;
}

OwnedRef interface_of(PyObject* object) {
  OwnedRef interface(PyObject_GetAttrString(object, attribute));
  if (interface && PyDict_Check(interface.get())) {
    return interface;
  }
  if (interface) {
    PyErr_Format(PyExc_TypeError, "argument 'obj': its %s must be a dict, got %.200R", attribute, interface.get());
  } else if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
    PyErr_Clear();
    PyErr_Format(
        PyExc_TypeError,
        "argument 'obj' must be on a GPU and have the attribute %s, got %.200s without it; try "
        "interop.from_dlpack(obj)",
        attribute, Py_TYPE(object)->tp_name);
  }
  throw PythonError();
}

// The result of to_cuda_array_interface().
struct CudaArray {
  static constexpr const char* type_name = "interop._bridges.CudaArray";
  static constexpr const char* doc = "A tensor's memory for consumers of the CUDA array interface.";
  static PyMemberDef members[2];

  OwnedRef interface;
  OwnedRef owner;
};
static_assert(sizeof(OwnedRef) == sizeof(PyObject*));  // T_OBJECT_EX reads a pointer

PyMemberDef CudaArray::members[] = {
    {attribute, T_OBJECT_EX, offsetof(Owner<CudaArray>, value.interface), READONLY,
     "The address, shape and type of the memory."},
    {nullptr, 0, 0, 0, nullptr}};

// What keeps the memory alive that `object` describes. A CudaArray passes its owner on, so that round trips do not nest
// owners. It has none if its tensor has no memory.
PyObject* owner_behind(PyObject* object) noexcept {
  const CudaArray* ours = Owner<CudaArray>::find(object);
  return ours && ours->owner ? ours->owner.get() : object;
}

PyObject* tuple_of(at::IntArrayRef values, int64_t factor) {
  OwnedRef tuple(checked(PyTuple_New(static_cast<Py_ssize_t>(values.size()))));
  for (size_t i = 0; i < values.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), checked(PyLong_FromLongLong(values[i] * factor)));
  }
  return tuple.release();
}

}  // namespace

at::Tensor tensor_of_cuda_array(PyObject* object, OnReadonly on_readonly) {
  const OwnedRef interface = interface_of(object);
  const int64_t version = integer(interface.get(), "version");
  TORCH_CHECK_VALUE(
      0 <= version && version <= newest, "argument 'obj' must have version 0 to ", newest,
      " of __cuda_array_interface__, got ", version);
  TORCH_CHECK_VALUE(
      !entry(interface.get(), "mask"),
      "argument 'obj' must have no mask, because torch has no masks, got an array with one; fill in its values first");
  const Dtype& dtype = dtype_of(interface.get());
  const Numbers shape = numbers(interface.get(), "shape");
  const bool strided = static_cast<bool>(entry(interface.get(), "strides"));
  const Numbers strides = strided ? numbers(interface.get(), "strides") : Numbers();
  TORCH_CHECK_VALUE(
      !strided || strides.size() == shape.size(), "argument 'obj' must have as many strides as sizes, got ",
      strides.size(), " and ", shape.size());
  const int ndim = static_cast<int>(std::min<size_t>(shape.size(), max_dim + 1));
  const ForeignLayout layout(subject, ndim, shape.data(), strided ? strides.data() : nullptr, dtype, Unit::bytes);
  const Data data = data_of(interface.get());
  first_element(subject, data.pointer, 0, dtype, layout);
  check_writable(data.read_only, on_readonly, "obj", "read-only memory");
  const int64_t stream = stream_of(interface.get(), version);
  const auto& found = interop::detail::devices(c10::kCUDA, "argument 'obj' is on CUDA");
  initialise_cuda();
  void* pointer = layout.numel() == 0 ? nullptr : data.pointer;
  const c10::Device device = pointer ? device_of_pointer(pointer) : found.getDevice();
  if (stream != 0) {
    wait_for_stream(device, stream);
  }
  at::Tensor tensor = lift_fresh(tensor_over(
      {pointer, Py_NewRef(owner_behind(object)), data.read_only ? &drop_read_only_owner : &drop_owner, device}, layout,
      dtype));
  return shared_or_copied(std::move(tensor), data.read_only, on_readonly);
}

PyObject* cuda_array_of_tensor(const at::Tensor& tensor, bool read_only) {
  const Exported exported = check_export(tensor, "tensor", access(read_only), Devices::cpu_or_cuda);
  TORCH_CHECK_TYPE(
      tensor.is_cuda(), "argument 'tensor' must be on device cuda, got ", tensor.device(),
      "; copy it with .cuda(), or use interop.to_dlpack(tensor)");
  const Dtype* dtype = find_dtype(tensor.scalar_type());
  TORCH_CHECK_TYPE(
      dtype && dtype->kind != 'V',
      "argument 'tensor' must have a dtype that the CUDA array interface has a name for, got ",
      interop::detail::dtype_name(tensor.scalar_type()), "; take its bits with .view(torch.",
      tensor.itemsize() == 1   ? "uint8"
      : tensor.itemsize() == 2 ? "uint16"
                               : "float16",
      "), or use interop.to_dlpack(tensor), which supports it");
  constexpr char ours = std::endian::native == std::endian::little ? '<' : '>';
  const std::string type = (dtype->size == 1 ? '|' : ours) + (dtype->kind + std::to_string(dtype->size));
  // Copies, because creating a Python object may collect garbage, and a finalizer may resize the tensor.
  const at::DimVector sizes(tensor.sizes());
  const at::DimVector strides(tensor.strides());
  const bool contiguous = tensor.is_contiguous();
  void* data = tensor.numel() == 0 ? nullptr : exported.data;  // "For zero-size arrays, use 0 here"
  OwnedRef owner;
  if (exported.data) {
    Hold hold = Hold::of(*exported.storage, Resizing::never);
    const bool is_foreign = hold.python_owner() && !Owner<Hold>::find(hold.python_owner());
    owner = is_foreign ? std::move(hold).into_owner() : std::move(hold).into_object();
  }
  const OwnedRef shape(tuple_of(sizes, 1));
  const OwnedRef steps(contiguous ? Py_NewRef(Py_None) : tuple_of(strides, dtype->size));
  // clang-format off: a key and its value a line. The strides of a C-contiguous layout are None.
  OwnedRef interface(checked(Py_BuildValue(
      "{s:O,s:s,s:(KO),s:i,s:O,s:L}",
      "shape", shape.get(),
      "typestr", type.c_str(),
      "data", reinterpret_cast<unsigned long long>(data), exported.writable ? Py_False : Py_True,
      "version", newest,
      "strides", steps.get(),
      "stream", static_cast<long long>(current_stream_number(tensor.device())))));
  // clang-format on
  return Owner<CudaArray>::make(std::move(interface), std::move(owner)).release();
}

int ready_cuda_array() noexcept {
  return Owner<CudaArray>::ready();
}

}  // namespace interop::bridges
