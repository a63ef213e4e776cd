// Tensors and NumPy arrays over the same memory. NumPy is loaded on first use.
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include "check_export.h"
#include "converters.h"
#include "import.h"
#include "interop/check_memory.h"
#include "interop/free_threading.h"
#include "interop/owned_ref.h"
#include "interop/tensor.h"
#include "memory.h"
#include "names.h"
#include "python.h"

namespace interop::bridges {

namespace {

static_assert(sizeof(npy_intp) == sizeof(int64_t) && NPY_MAXDIMS == max_dim);

// NumPy's function table is set up in several steps, before NumPy's version is checked. No thread may see it half done.
std::atomic<bool> numpy_is_loaded{false};

bool is_numpy_loaded() noexcept {
  return numpy_is_loaded.load(std::memory_order_acquire);
}

void load_numpy() {
#ifdef Py_GIL_DISABLED
  // A critical section, and no lock: importing calls builtins.__import__, which may be anybody's and convert an array.
  const OwnedRef module(checked(PyImport_ImportModule("numpy._core._multiarray_umath")));
  const CriticalSection section(module.get());
  if (is_numpy_loaded()) {
    return;
  }
#endif
  checked(_import_array());
  numpy_is_loaded.store(true, std::memory_order_release);
}

void need_numpy() {
  if (!is_numpy_loaded()) [[unlikely]] {
    load_numpy();
  }
}

constexpr int type_number(const Dtype& dtype) {
  constexpr int u[] = {NPY_UINT8, NPY_UINT16, NPY_UINT32, NPY_UINT64};
  constexpr int i[] = {NPY_INT8, NPY_INT16, NPY_INT32, NPY_INT64};
  constexpr int f[] = {-1, NPY_FLOAT16, NPY_FLOAT32, NPY_FLOAT64};
  constexpr int c[] = {-1, -1, -1, NPY_COMPLEX64, NPY_COMPLEX128};
  const unsigned log_size = detail::log2(dtype.size);
  switch (dtype.kind) {
    case 'b':
      return NPY_BOOL;
    case 'u':
      return u[log_size];
    case 'i':
      return i[log_size];
    case 'f':
      return f[log_size];
    case 'c':
      return c[log_size];
    default:
      return -1;
  }
}

// NumPy's type numbers, by row of the table.
constexpr auto type_numbers = [] {
  std::array<int, dtypes.size()> numbers{};
  std::transform(dtypes.begin(), dtypes.end(), numbers.begin(), type_number);
  return numbers;
}();

std::string text_of(PyObject* object) {
  const OwnedRef text(PyObject_Str(object));
  const char* characters = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!characters) {
    PyErr_Clear();
    return "?";
  }
  return characters;
}

// The package ml_dtypes adds NumPy's dtypes for bfloat16 and the 8-bit floats.
std::array<std::atomic<PyObject*>, dtypes.size()> ml_types{};  // by row of the table; owned, for good

// The scalar type of a row, borrowed, or null. It is cached once found.
PyObject* find_ml_type(size_t row, PyObject* module) {
  PyObject* known = ml_types[row].load(std::memory_order_acquire);
  if (known || !dtypes[row].ml_name) {
    return known;
  }
  OwnedRef found(PyObject_GetAttrString(module, dtypes[row].ml_name));
  PyErr_Clear();  // an old release lacks it
  // Another thread may have been faster.
  return ml_types[row].compare_exchange_strong(known, found.get()) ? found.release() : known;
}

// The row of a scalar type of ml_dtypes, or null for any other type.
const Dtype* find_ml_dtype(PyObject* type) {
  // An array of such a dtype exists only if the package is imported.
  const OwnedRef module(PyImport_GetModule(names::ml_dtypes));
  if (!module || !type) {
    PyErr_Clear();
    return nullptr;
  }
  for (size_t row = 0; row < dtypes.size(); ++row) {
    if (dtypes[row].ml_name && find_ml_type(row, module.get()) == type) {
      return &dtypes[row];
    }
  }
  return nullptr;
}

// The scalar type of a row with an ml_name, borrowed. TypeError, about `tensor`, if ml_dtypes is missing or lacks it.
PyObject* ml_dtype_type(const Dtype& dtype, const at::Tensor& tensor) {
  const size_t row = &dtype - dtypes.data();
  PyObject* type = ml_types[row].load(std::memory_order_acquire);
  if (!type) {
    if (const OwnedRef module(PyImport_Import(names::ml_dtypes)); module) {
      type = find_ml_type(row, module.get());
    }
    PyErr_Clear();
  }
  TORCH_CHECK_TYPE(
      type, "argument 'tensor' has dtype ", interop::detail::dtype_name(tensor.scalar_type()),
      ", which NumPy has through ml_dtypes.", dtype.ml_name,
      " only; run: pip install ml_dtypes, or take its bits with .view(torch.", dtype.size == 1 ? "uint8" : "uint16",
      "), or convert it with .to(torch.float32)");
  return type;
}

// Advice for an array whose dtype torch lacks.
const char* advice_for(PyArray_Descr* descr) {
  if (PyDataType_HASFIELDS(descr)) {
    return "take its fields one by one, array[name]";
  }
  switch (descr->kind) {
    case 'O':
      return "convert it with array.astype(dtype); a tensor cannot hold Python objects";
    case 'U':
    case 'S':
    case 'T':
      return "torch has no strings";
    case 'M':
    case 'm':
      return "take the numbers with array.view(numpy.int64)";
    case 'f':
      return "convert it with array.astype(numpy.float64)";
    case 'c':
      return "convert it with array.astype(numpy.complex128)";
    default:
      return "convert it with array.astype(dtype), or take its bits with array.view(dtype)";
  }
}

const Dtype& dtype_of_descr(PyArray_Descr* descr, const Subject& subject) {
  const Dtype* dtype = nullptr;
  if (descr->type_num >= 0 && descr->type_num < NPY_USERDEF) [[likely]] {
    dtype = find_dtype(descr->kind, PyDataType_ELSIZE(descr));
  } else {
    dtype = find_ml_dtype(reinterpret_cast<PyObject*>(descr->typeobj));
  }
  TORCH_CHECK_TYPE(
      dtype, subject, " must have a dtype that torch has, got ", text_of(reinterpret_cast<PyObject*>(descr)), "; ",
      advice_for(descr));
  TORCH_CHECK_VALUE(
      PyArray_ISNBO(descr->byteorder), subject, " must have the byte order of this machine, got ",
      text_of(reinterpret_cast<PyObject*>(descr)), "; copy it with array.astype(array.dtype.newbyteorder('='))");
  return *dtype;
}

// The NumPy dtype for a tensor.
OwnedRef descr_of(const at::Tensor& tensor) {
  const Dtype* dtype = find_dtype(tensor.scalar_type());
  TORCH_CHECK_TYPE(
      dtype != nullptr && (dtype->kind != 'V' || dtype->ml_name),
      "argument 'tensor' must have a dtype that NumPy has, got ", interop::detail::dtype_name(tensor.scalar_type()),
      tensor.scalar_type() == c10::ScalarType::ComplexHalf
          ? "; convert it with .to(torch.complex64), or take its parts with torch.view_as_real(tensor)"
          : "; convert it with .to(dtype), or take its bits with .view(torch.uint8)");
  const int number = type_numbers[dtype - dtypes.data()];
  if (number >= 0) [[likely]] {
    return OwnedRef(checked(reinterpret_cast<PyObject*>(PyArray_DescrFromType(number))));
  }
  PyArray_Descr* descr = nullptr;
  PyObject* type = ml_dtype_type(*dtype, tensor);
  if (!PyArray_DescrConverter(type, &descr)) {
    throw PythonError();
  }
  return OwnedRef(reinterpret_cast<PyObject*>(descr));
}

// As force=True in torch: a tensor on the CPU whose memory holds its values, copied only if necessary.
at::Tensor plain(const at::Tensor& tensor) {
  const NoGil no_gil;
  const at::Tensor found = tensor.detach().cpu().resolve_conj().resolve_neg();
  return found._is_zerotensor() ? found.clone() : found;
}

}  // namespace

bool is_array(PyObject* object) {
  if (!is_numpy_loaded()) [[unlikely]] {
    // An object of another type must not load NumPy.
    if (Py_TYPE(object)->tp_name != std::string_view("numpy.ndarray")) {
      return false;
    }
    need_numpy();
  }
  return PyArray_CheckExact(object);
}

bool python::is_new_array(PyObject* object) noexcept {
  if (!is_numpy_loaded() || !PyArray_CheckExact(object)) {
    return false;
  }
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  return PyArray_BASE(array) == nullptr && PyArray_SIZE(array) != 0;
}

bool python::is_array_of(PyObject* array, PyObject* given) noexcept {
  return array == given || (PyArray_Check(given) && PyArray_BASE(reinterpret_cast<PyArrayObject*>(given)) == array);
}

void check_unmasked(PyObject* object, const char* argument) {
  const OwnedRef module(PyImport_GetModule(names::numpy_ma));  // not imported: no masked arrays exist
  if (!module) {
    if (PyErr_Occurred()) {
      throw PythonError();
    }
    return;
  }
  need_numpy();
  if (!PyArray_Check(object)) {
    return;
  }
  const OwnedRef masked(checked(PyObject_CallMethod(module.get(), "is_masked", "O", object)));
  TORCH_CHECK_VALUE(
      masked.get() != Py_True, ArgumentName{argument},
      " must have no masked elements, got a masked array, and torch has no masks; fill them with "
      "array.filled(value), or take them as they are with array.data");
}

at::Tensor tensor_of_array(PyObject* object, OnReadonly on_readonly, const char* argument) {
  need_numpy();
  if (!PyArray_Check(object)) [[unlikely]] {
    raise_error(
        PyExc_TypeError, "argument '%s' must be a numpy.ndarray, got %.200s; %s", argument, Py_TYPE(object)->tp_name,
        is_tensor(object) ? "it is a tensor already; interop.to_numpy(tensor) converts to NumPy"
                          : "make one with numpy.asarray(array)");
  }
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  const Subject subject{argument, "copy it with array.copy()"};
  // Checking the mask and the dtype may run Python code, which can change the array's dtype, shape and memory
  // (__setstate__). So both come before all reads, and the dtype is checked again.
  if (!PyArray_CheckExact(object)) {
    check_unmasked(object, argument);
  }
  const OwnedRef descr(Py_NewRef(reinterpret_cast<PyObject*>(PyArray_DESCR(array))));
  const Dtype& dtype = dtype_of_descr(reinterpret_cast<PyArray_Descr*>(descr.get()), subject);
  TORCH_CHECK_VALUE(
      reinterpret_cast<PyObject*>(PyArray_DESCR(array)) == descr.get(), ArgumentName{argument},
      " must keep its dtype, got an array that changed it during the call");
  const bool writable = PyArray_CHKFLAGS(array, NPY_ARRAY_WRITEABLE);
  check_writable(!writable, on_readonly, argument, "a read-only array");
  const ForeignLayout layout(
      subject, PyArray_NDIM(array), PyArray_DIMS(array), PyArray_STRIDES(array), dtype, Unit::bytes);
  void* data = first_element(subject, PyArray_DATA(array), 0, dtype, layout);
  at::Tensor tensor = lift_fresh(
      tensor_over({data, Py_NewRef(object), writable ? &drop_owner : &drop_read_only_owner, c10::kCPU}, layout, dtype));
  return shared_or_copied(std::move(tensor), !writable, on_readonly);
}

// Whether an array over the memory of this owner, which may be null, could lengthen a chain of arrays, memoryviews and
// capsules, which is freed recursively. NumPy itself shortens chains of arrays.
static bool extends_chain(PyObject* owner) noexcept {
  while (owner && PyArray_Check(owner)) {
    owner = PyArray_BASE(reinterpret_cast<PyArrayObject*>(owner));
  }
  return owner && (PyMemoryView_Check(owner) || PyCapsule_CheckExact(owner) || PyPickleBuffer_Check(owner));
}

PyObject* array_of_tensor(const at::Tensor& given, bool force, bool read_only) {
  need_numpy();
  const at::Tensor forced = force ? plain(given) : at::Tensor();
  const at::Tensor& tensor = force ? forced : given;
  Exported exported = check_counted_export(tensor, "tensor", access(read_only));
  OwnedRef owned_descr = descr_of(tensor);
  auto* descr = reinterpret_cast<PyArray_Descr*>(owned_descr.get());
  if (descr->type_num >= NPY_USERDEF) {  // importing ml_dtypes may run Python code, which can resize the tensor
    exported = check_counted_export(tensor, "tensor", access(read_only));
  }
  const at::IntArrayRef sizes = tensor.sizes();
  TORCH_CHECK_VALUE(
      sizes.size() <= max_dim, "argument 'tensor' must have at most ", max_dim,
      " dimensions, which is NumPy's limit, got ", sizes.size(), "; join some with .flatten()");
  npy_intp strides[max_dim];
  const int64_t* steps = tensor.strides().data();
  const auto itemsize = static_cast<npy_intp>(PyDataType_ELSIZE(descr));
  for (size_t d = 0; d < sizes.size(); ++d) {
    strides[d] = steps[d] * itemsize;
  }
  OwnedRef array(checked(PyArray_NewFromDescr(
      &PyArray_Type, reinterpret_cast<PyArray_Descr*>(owned_descr.release()), static_cast<int>(sizes.size()),
      reinterpret_cast<const npy_intp*>(sizes.data()), strides, exported.data,
      exported.writable ? NPY_ARRAY_WRITEABLE : 0, nullptr)));
  auto* result = reinterpret_cast<PyArrayObject*>(array.get());
  if (exported.data) {  // otherwise NumPy has allocated memory for no elements
    Hold hold = Hold::of(*exported.storage, Resizing::never);
    OwnedRef base = extends_chain(hold.python_owner()) ? std::move(hold).into_owner() : std::move(hold).into_object();
    checked(PyArray_SetBaseObject(result, base.release()));
  } else if (!exported.writable) {
    PyArray_CLEARFLAGS(result, NPY_ARRAY_WRITEABLE);
  }
  return array.release();
}

}  // namespace interop::bridges
