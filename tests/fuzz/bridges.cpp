// What libFuzzer calls to attack the importers of shared memory: formats, buffers, DLPack, the CUDA array interface.
//
// A module of Python's: run(target, arguments) hands over to libFuzzer, which does not come back. run.py builds it,
// with all of csrc/bridges in it.
#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bridges/converters.h"
#include "bridges/python.h"
#include "interop/bridges/format.h"

extern "C" int LLVMFuzzerRunDriver(int* argc, char*** argv, int (*callback)(const uint8_t* data, size_t size));

namespace {

using namespace interop::bridges;

#define HOLDS(condition)                                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      std::fprintf(stderr, "line %d: %s is not so\n", __LINE__, #condition); \
      std::abort();                                                          \
    }                                                                        \
  } while (false)

// Takes what it needs from the input; zeros where that has ended.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  template <class T>
  T take() {
    T value{};
    const size_t bytes = std::min(sizeof(T), size_);
    std::memcpy(&value, data_, bytes);
    data_ += bytes;
    size_ -= bytes;
    return value;
  }
  // Mostly small, sometimes anything: a size, a stride or an offset.
  int64_t number() {
    const auto kind = take<uint8_t>();
    return kind < 224 ? static_cast<int64_t>(kind % 8) - (kind >= 208 ? 4 : 0) : take<int64_t>();
  }
  bool flag() {
    return take<uint8_t>() & 1;
  }
  std::string rest(size_t most) {
    const std::string text(reinterpret_cast<const char*>(data_), std::min(size_, most));
    data_ += text.size();
    size_ -= text.size();
    return text;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

// On the heap, of the exact size, so that the sanitizer sees who reads further.
struct Memory {
  explicit Memory(size_t size) : bytes(new char[size]()) {}
  ~Memory() {
    delete[] bytes;
  }
  char* bytes;
};

constexpr size_t arena_bytes = 256;

void* address(Input& input, const Memory& arena) {
  switch (input.take<uint8_t>() % 8) {
    case 0:
      return nullptr;
    case 1:
      return reinterpret_cast<void*>(input.take<uintptr_t>());
    case 2:
      return arena.bytes + input.take<uint8_t>() % arena_bytes;
    default:
      return arena.bytes;
  }
}

// What is true of all tensors that were let in: the memory that they reach does not wrap around, and is the storage's.
void check(const at::Tensor& tensor) {
  const at::IntArrayRef sizes = tensor.sizes();
  HOLDS(sizes.size() <= 64);
  __int128 last = 0;
  bool empty = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    HOLDS(sizes[d] >= 0 && tensor.stride(static_cast<int64_t>(d)) >= 0);
    empty |= sizes[d] == 0;
    last += static_cast<__int128>(sizes[d] - 1) * tensor.stride(static_cast<int64_t>(d));
  }
  if (empty) {
    return;
  }
  const __int128 bytes = (last + 1) * static_cast<__int128>(tensor.itemsize());
  const auto begin = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
  HOLDS(begin != 0 && begin % find_dtype(tensor.scalar_type())->alignment == 0);
  HOLDS(bytes <= static_cast<__int128>(tensor.storage().nbytes()));
  HOLDS(static_cast<__int128>(begin) + bytes < (static_cast<__int128>(1) << 64));
}

// Runs an import, which may raise an error; no Python error is left.
void attempt(const std::function<at::Tensor()>& import) {
  try {
    check(import());
  } catch (...) {
    interop::translate_exception();
    HOLDS(PyErr_Occurred());
    HOLDS(!PyErr_ExceptionMatches(PyExc_SystemError));
    PyErr_Clear();
  }
  HOLDS(!PyErr_Occurred());
}

// Formats

int formats(const uint8_t* data, size_t size) {
  const std::string text = std::string(reinterpret_cast<const char*>(data), size).c_str();  // up to a zero
  const Format format = read_format(text.c_str());
  HOLDS((format.dtype == nullptr) == (format.reason != nullptr));
  if (format.dtype) {
    HOLDS(!format.pointers);
    int64_t bytes = format.dtype->size;
    for (const int64_t one : format.sizes) {
      HOLDS(!__builtin_mul_overflow(bytes, one, &bytes));
    }
    HOLDS(bytes == format.itemsize);
    HOLDS(text.find_first_of("OPX&") == std::string::npos || text.find(':') != std::string::npos);
  }
  return 0;
}

// Buffers

struct Exporter {
  PyObject_HEAD
  Py_buffer* told;
};

int exports = 0;

int tell(PyObject* self, Py_buffer* view, int) {
  *view = *reinterpret_cast<Exporter*>(self)->told;
  view->obj = Py_NewRef(self);
  ++exports;
  return 0;
}

void give_back(PyObject*, Py_buffer*) {
  --exports;
}

PyBufferProcs exporting = {tell, give_back};
PyTypeObject exporter_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

int buffers(const uint8_t* data, size_t size) {
  Input input(data, size);
  const Memory arena(arena_bytes);
  Py_buffer told{};
  told.buf = address(input, arena);
  told.readonly = input.flag();
  told.ndim = static_cast<int>(input.number()) % 70;
  told.itemsize = input.number();
  const bool shaped = input.take<uint8_t>() % 8 != 0;
  const bool strided = input.flag();
  const auto axes = static_cast<size_t>(std::max(told.ndim, 0));
  std::vector<Py_ssize_t> shape, strides, suboffsets;
  Py_ssize_t bytes = told.itemsize;
  for (size_t d = 0; d < axes; ++d) {
    shape.push_back(input.number());
    strides.push_back(input.number());
    suboffsets.push_back(-1);
    if (__builtin_mul_overflow(bytes, shape.back(), &bytes)) {
      bytes = -1;
    }
  }
  told.len = input.take<uint8_t>() % 4 ? bytes : input.number();
  if (input.take<uint8_t>() % 16 == 0 && axes > 0) {
    suboffsets[0] = input.number();
    told.suboffsets = suboffsets.data();
  }
  told.shape = shaped ? shape.data() : nullptr;
  told.strides = strided ? strides.data() : nullptr;
  BufferView wanted;
  constexpr c10::ScalarType types[] = {
      c10::ScalarType::Undefined, c10::ScalarType::Byte, c10::ScalarType::Long, c10::ScalarType::ComplexDouble};
  wanted.dtype = types[input.take<uint8_t>() % 4];
  wanted.offset = input.number();
  wanted.has_shape = input.flag();
  std::vector<int64_t> wanted_shape;
  for (auto d = input.take<uint8_t>() % 4; d > 0; --d) {
    wanted_shape.push_back(input.number());
  }
  wanted.shape = wanted_shape;
  const bool has_format = input.take<uint8_t>() % 8 != 0;
  const std::string format = input.rest(32);
  std::vector<char> text(format.begin(), format.end());
  text.push_back('\0');
  told.format = has_format ? text.data() : nullptr;

  Exporter* exporter = PyObject_New(Exporter, &exporter_type);
  exporter->told = &told;
  constexpr OnReadonly policies[] = {OnReadonly::raise, OnReadonly::share};
  const OnReadonly policy = policies[input.take<uint8_t>() % 2];
  attempt([&] { return tensor_of_buffer(reinterpret_cast<PyObject*>(exporter), wanted, policy); });
  HOLDS(exports == 0);
  HOLDS(Py_REFCNT(exporter) == 1);
  Py_DECREF(exporter);
  return 0;
}

// DLPack

int deleted = 0;

template <class Managed>
void count(Managed*) {
  ++deleted;
}

template <class Managed>
void fill(Managed& managed, Input& input, const Memory& arena, std::vector<int64_t>& numbers) {
  DLTensor& tensor = managed.dl_tensor;
  tensor.data = address(input, arena);
  tensor.device = {static_cast<DLDeviceType>(input.take<uint8_t>() % 8 ? 1 : input.take<uint8_t>()), 0};
  tensor.device.device_id = static_cast<int32_t>(input.number());
  tensor.ndim = static_cast<int32_t>(input.take<uint8_t>() % 16 ? input.take<uint8_t>() % 6 : input.number());
  constexpr uint8_t widths[] = {8, 16, 32, 64, 128, 1, 4, 0};
  tensor.dtype.code = input.take<uint8_t>() % 20;
  tensor.dtype.bits = widths[input.take<uint8_t>() % 8];
  tensor.dtype.lanes = input.take<uint8_t>() % 16 ? 1 : input.take<uint16_t>();
  tensor.byte_offset = static_cast<uint64_t>(input.number());
  const auto axes = static_cast<size_t>(std::clamp<int64_t>(tensor.ndim, 0, 65));
  for (size_t d = 0; d < 2 * axes; ++d) {
    numbers.push_back(input.number());
  }
  numbers.shrink_to_fit();
  tensor.shape = input.take<uint8_t>() % 16 ? numbers.data() : nullptr;
  tensor.strides = input.flag() ? numbers.data() + axes : nullptr;
  managed.deleter = input.take<uint8_t>() % 16 ? &count<Managed> : nullptr;
}

DlpackImport wanted_of(Input& input) {
  DlpackImport wanted;
  constexpr OnReadonly policies[] = {OnReadonly::raise, OnReadonly::share, OnReadonly::copy};
  // No copies: of memory that only the input says to be there.
  wanted.on_readonly = policies[input.take<uint8_t>() % 2];
  if (input.flag()) {
    wanted.copy = false;
  }
  return wanted;
}

int dlpack(const uint8_t* data, size_t size) {
  Input input(data, size);
  const Memory arena(arena_bytes);
  std::vector<int64_t> numbers;
  deleted = 0;
  const DlpackImport wanted = wanted_of(input);
  if (input.flag()) {
    DLManagedTensorVersioned managed{};
    managed.version.major = input.take<uint8_t>() % 16 ? 1 : input.take<uint32_t>();
    managed.flags = input.take<uint8_t>() % 8;
    fill(managed, input, arena, numbers);
    attempt([&] { return tensor_of_managed(&managed, wanted); });
    HOLDS(deleted == (managed.deleter ? 1 : 0));
    return 0;
  }
  DLManagedTensor managed{};
  fill(managed, input, arena, numbers);
  PyObject* capsule = PyCapsule_New(&managed, "dltensor", nullptr);
  attempt([&] { return tensor_of_dlpack(capsule, wanted); });
  const bool used = PyCapsule_IsValid(capsule, "used_dltensor");
  HOLDS(deleted == (used && managed.deleter ? 1 : 0));
  HOLDS(Py_REFCNT(capsule) == 1);
  Py_DECREF(capsule);
  return 0;
}

// The CUDA array interface: target.py makes an object that has it of the input.

PyObject* of_entries = nullptr;

int cuda_arrays(const uint8_t* data, size_t size) {
  PyObject* bytes = PyBytes_FromStringAndSize(reinterpret_cast<const char*>(data), static_cast<Py_ssize_t>(size));
  PyObject* carrier = PyObject_CallFunctionObjArgs(of_entries, bytes, nullptr);
  Py_DECREF(bytes);
  if (!carrier) {
    PyErr_Clear();
    return 0;
  }
  attempt([&] { return tensor_of_cuda_array(carrier, OnReadonly::share); });
  HOLDS(Py_REFCNT(carrier) == 1);
  Py_DECREF(carrier);
  return 0;
}

const std::map<std::string, int (*)(const uint8_t*, size_t)> targets = {
    {"formats", formats}, {"buffers", buffers}, {"dlpack", dlpack}, {"cuda_arrays", cuda_arrays}};

// run(target, arguments, of_entries): the last makes an object with a __cuda_array_interface__ of bytes.
PyObject* run(PyObject*, PyObject* arguments) {
  const char* target;
  PyObject* given;
  if (!PyArg_ParseTuple(arguments, "sO!O", &target, &PyList_Type, &given, &of_entries)) {
    return nullptr;
  }
  static std::vector<std::string> words = {target};
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(given); ++i) {
    words.emplace_back(PyUnicode_AsUTF8(PyList_GET_ITEM(given, i)));
  }
  static std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  int count = static_cast<int>(pointers.size());
  pointers.push_back(nullptr);
  char** first = pointers.data();
  return PyLong_FromLong(LLVMFuzzerRunDriver(&count, &first, targets.at(target)));
}

PyMethodDef methods[] = {{"run", run, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyModuleDef module = {PyModuleDef_HEAD_INIT, "fuzz_bridges", nullptr, -1, methods};

}  // namespace

PyMODINIT_FUNC PyInit_fuzz_bridges() {
  exporter_type.tp_name = "fuzz_bridges.Exporter";
  exporter_type.tp_basicsize = sizeof(Exporter);
  exporter_type.tp_as_buffer = &exporting;
  exporter_type.tp_flags = Py_TPFLAGS_DEFAULT;
  if (PyType_Ready(&exporter_type) < 0 || !python::make_capsule()) {
    return nullptr;
  }
  return PyModule_Create(&module);
}
