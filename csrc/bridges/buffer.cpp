// Tensors and the buffer protocol (PEP 3118, and the chapter "Buffer Protocol" of the Python/C API): tensors over
// exporters' memory, TensorBuffer, which exports a tensor's memory, and torch.Tensor as an exporter.
#include <Python.h>

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/Tensor.h>
#include <c10/core/SafePyObject.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <new>
#include <string>
#include <utility>

#include "check_export.h"
#include "converters.h"
#include "import.h"
#include "interop/bridges/dtypes.h"
#include "interop/bridges/format.h"
#include "interop/error_in_flight.h"
#include "interop/exceptions.h"
#include "interop/free_threading.h"
#include "interop/owned_ref.h"
#include "interop/tensor.h"
#include "memory.h"
#include "names.h"
#include "python.h"

namespace interop::bridges {

// Import: a tensor over the memory of an exporter

namespace {

void drop_buffer(Py_buffer& view) noexcept {
  if (!view.obj) {
    return;
  }
  const SharedRef counted = shared_ref(view.obj);  // for the section, which ends after the release
  const CriticalSection section(counted.get());
  PyBuffer_Release(&view);  // once for each PyObject_GetBuffer()
}

// Holds an export for as long as a storage needs the memory. Until then a bytearray cannot be resized, nor an mmap
// closed. The view is filled in place, because an exporter may point `shape` and `strides` into the view itself.
struct Buffer {
  static constexpr const char* type_name = "interop._bridges.Buffer";
  static constexpr const char* doc = "Holds the buffer of an object for a tensor that shares it.";

  Py_buffer view;

  ~Buffer() {
    drop_buffer(view);
  }
};

constexpr Subject subject{"obj", "copy it with bytearray(obj) and give dtype= and shape="};

using Sizes = c10::SmallVector<int64_t, 8>;

// An exporter's sizes, and its strides in bytes, after validation.
struct Axes {
  Sizes sizes;
  Sizes strides;
  bool contiguous = true;  // in C order
};

Axes axes_of(const Py_buffer& view) {
  TORCH_CHECK_VALUE(
      0 <= view.ndim && view.ndim <= max_dim, "argument 'obj' must have 0 to ", max_dim,
      " dimensions, got a buffer with ", view.ndim);
  TORCH_CHECK_VALUE(
      view.ndim <= 1 || view.shape, "argument 'obj' must have a shape, got a buffer without one, with ", view.ndim,
      " axes");
  TORCH_CHECK_VALUE(
      view.itemsize > 0 && view.len >= 0,
      "argument 'obj' must have elements of at least 1 byte, got a buffer with item size ", view.itemsize,
      " and length ", view.len);
  Axes axes;
  int64_t bytes = view.itemsize;
  bool overflows = false;
  bool empty = false;
  for (int d = 0; d < view.ndim; ++d) {
    const int64_t size = view.shape ? view.shape[d] : view.len / view.itemsize;
    TORCH_CHECK_VALUE(size >= 0, "argument 'obj' must have sizes >= 0, got ", size, " on axis ", d);
    // Py_buffer.suboffsets: a value >= 0 means that the axis leads through pointers.
    TORCH_CHECK_VALUE(
        !view.suboffsets || view.suboffsets[d] < 0,
        "argument 'obj' must have its elements in one block of memory, got a buffer with pointers on axis ", d, "; ",
        subject.advice);
    axes.sizes.push_back(size);
    overflows |= __builtin_mul_overflow(bytes, size, &bytes);
    empty |= size == 0;
  }
  // Py_buffer.len: product(shape) * itemsize, even if there are gaps between the elements.
  TORCH_CHECK_VALUE(
      (empty && view.len == 0) || (!empty && !overflows && bytes == view.len),
      "argument 'obj' must have the length of its shape, got a buffer of ", view.len, " bytes with shape ",
      at::IntArrayRef(axes.sizes), " and item size ", view.itemsize);
  // Py_buffer.strides: null if the elements are C-contiguous.
  axes.strides.resize(view.ndim);
  int64_t step = view.itemsize;
  for (int d = view.ndim - 1; d >= 0; --d) {
    axes.strides[d] = view.strides ? view.strides[d] : step;
    axes.contiguous &= axes.strides[d] == step || axes.sizes[d] == 1 || empty;
    step = empty ? step : step * axes.sizes[d];  // within view.len
  }
  return axes;
}

// The shape for `bytes` bytes of contiguous memory: the requested one, with its -1 resolved.
Sizes shape_for(const BufferView& wanted, int64_t bytes, const Dtype& dtype) {
  const int64_t room = bytes / dtype.size;
  if (!wanted.has_shape) {
    TORCH_CHECK_VALUE(
        bytes % dtype.size == 0, "argument 'obj' must have a whole number of elements of ",
        static_cast<int>(dtype.size), " bytes, got ", bytes,
        " bytes after the offset; give the number of elements with shape=");
    return {room};
  }
  Sizes sizes(wanted.shape.begin(), wanted.shape.end());
  int64_t count = 1;
  bool overflows = false;
  bool empty = false;
  int64_t* open = nullptr;
  for (int64_t& size : sizes) {
    if (size == -1) {
      TORCH_CHECK_VALUE(!open, "argument 'shape' must have at most one -1, got ", wanted.shape);
      open = &size;
      continue;
    }
    TORCH_CHECK_VALUE(size >= 0, "argument 'shape' must have sizes >= 0, and at most one -1, got ", wanted.shape);
    empty |= size == 0;
    overflows |= __builtin_mul_overflow(count, size, &count);
  }
  if (empty) {
    count = 0;
    overflows = false;
  }
  const bool fits = open ? count > 0 && bytes % dtype.size == 0 && room % count == 0 : count <= room;
  TORCH_CHECK_VALUE(
      !overflows && fits,
      open ? "argument 'shape' must divide the memory, got " : "argument 'shape' must fit into the memory, got ",
      wanted.shape, " for ", bytes, " bytes after the offset and elements of ", static_cast<int>(dtype.size), " bytes");
  if (open) {
    *open = room / count;
  }
  return sizes;
}

// An exporter's format for a message, which must be UTF-8.
std::string printable(const char* text) {
  std::string result;
  for (; *text; ++text) {
    result += ' ' <= *text && *text <= '~' ? std::string(1, *text) : "?";
  }
  return result;
}

const Dtype& wanted_dtype(const BufferView& wanted, const Format& format, const char* text) {
  TORCH_CHECK_TYPE(
      !format.pointers, "argument 'obj' must have numbers as elements, got a buffer with format '", printable(text),
      "': ", format.reason);
  if (wanted.dtype != c10::ScalarType::Undefined) {
    const Dtype* dtype = find_dtype(wanted.dtype);
    TORCH_CHECK_TYPE(
        dtype, "argument 'dtype' must be a dtype whose elements are plain memory, got ", c10::toString(wanted.dtype),
        "; take its bits with dtype=torch.uint8");
    return *dtype;
  }
  TORCH_CHECK_TYPE(
      format.dtype, "argument 'obj' must have elements that torch has, got a buffer with format '", printable(text),
      "': ", format.reason, "; name the dtype of its bytes with dtype=");
  return *format.dtype;
}

// The hold on a tensor's memory if `view` exports it, directly or through a memoryview; otherwise null.
const Hold* hold_behind(const Py_buffer& view) noexcept;

at::Tensor share(
    OwnedRef&& owner, const Py_buffer& view, int64_t offset, const ForeignLayout& layout, const Dtype& dtype) {
  const bool read_only = view.readonly;
  void* data = first_element(subject, view.buf, static_cast<uint64_t>(offset), dtype, layout);
  if (const Hold* hold = hold_behind(view)) {
    // Reuses the hold, so that round trips do not nest owners.
    return tensor_over(hold->again().into_data_ptr(data, c10::kCPU, read_only), layout, dtype);
  }
  return tensor_over(
      {data, owner.release(), read_only ? &drop_read_only_owner : &drop_owner, c10::kCPU}, layout, dtype);
}

at::Tensor share(OwnedRef&& owner, const Py_buffer& view, const BufferView& wanted) {
  const char* text = view.format ? view.format : "B";  // Py_buffer.format: null means unsigned bytes
  const Format format = read_format(view.format);
  const Dtype& dtype = wanted_dtype(wanted, format, text);
  Axes axes = axes_of(view);
  TORCH_CHECK_VALUE(
      !format.dtype || format.itemsize == view.itemsize, "argument 'obj' must have the item size of its format, got ",
      view.itemsize, " bytes for format '", printable(text), "'");
  const bool has_elements = format.dtype && format.dtype->size == dtype.size;
  const bool whole = wanted.offset == 0 && !wanted.has_shape && (has_elements || dtype.size == view.itemsize);
  if (whole) {
    if (has_elements) {  // a subarray adds axes
      int64_t step = view.itemsize;
      for (const int64_t size : format.sizes) {
        step /= size;  // size is not 0, or the item size would be 0
        axes.sizes.push_back(size);
        axes.strides.push_back(step);
      }
    }
    const ForeignLayout layout(
        subject, static_cast<int>(axes.sizes.size()), axes.sizes.data(), axes.strides.data(), dtype, Unit::bytes);
    return share(std::move(owner), view, 0, layout, dtype);
  }
  TORCH_CHECK_VALUE(
      axes.contiguous, "argument 'obj' must be contiguous for another dtype or shape, or an offset; ", subject.advice);
  TORCH_CHECK_VALUE(
      0 <= wanted.offset && wanted.offset <= view.len, "argument 'offset' must be from 0 to ", view.len,
      ", the buffer's length in bytes, got ", wanted.offset);
  const Sizes sizes = shape_for(wanted, view.len - wanted.offset, dtype);
  const ForeignLayout layout(
      Subject{"shape", "give a smaller one"}, static_cast<int>(sizes.size()), sizes.data(),
      static_cast<const int64_t*>(nullptr), dtype, Unit::bytes);
  return share(std::move(owner), view, wanted.offset, layout, dtype);
}

// The class of masked arrays is a heap type. The types of most exporters are static, and cost no more than this.
void check_if_masked(PyObject* object) {
  if (PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE)) {
    check_unmasked(object, "obj");
  }
}

// Fills `view`, in place. Whatever comes of it, the caller releases a view that has an `obj`.
void take_buffer(PyObject* exporter, Py_buffer& view) {
  view.obj = nullptr;
  if (!PyObject_CheckBuffer(exporter)) {
    raise_error(
        PyExc_TypeError, "argument 'obj' must support the buffer protocol, got %.200s; try %s first",
        Py_TYPE(exporter)->tp_name, is_tensor(exporter) ? "interop.as_memoryview(obj)" : "numpy.asarray(obj)");
  }
  check_if_masked(exporter);
  const int failed = [&] {
    // CPython's own exporters count their exports without a lock.
    const CriticalSection section(exporter);
    return PyObject_GetBuffer(exporter, &view, PyBUF_FULL_RO);
  }();
  if (failed < 0) {
    view.obj = nullptr;  // exporters must do this, and some forget
    if (!PyErr_Occurred()) {
      raise_error(
          PyExc_BufferError, "argument 'obj' exports no buffer, and %.200s does not say why",
          Py_TYPE(exporter)->tp_name);
    }
    throw PythonError();
  }
  // Memoryviews and PickleBuffers may hand on the buffer of a masked array.
  PyObject* source = view.obj;
  while (source && PyMemoryView_Check(source)) {
    source = PyMemoryView_GET_BASE(source);
  }
  if (source && source != exporter) {
    check_if_masked(source);
  }
}

}  // namespace

int python::take_buffer(PyObject* exporter, Py_buffer* view) noexcept {
  // After a failure the caller's __dealloc__ drops the view.
  return guarded([&] { bridges::take_buffer(exporter, *view); });
}

void python::drop_buffer(Py_buffer* view) noexcept {
  bridges::drop_buffer(*view);
}

at::Tensor tensor_of_buffer(PyObject* exporter, const BufferView& wanted, OnReadonly on_readonly) {
  OwnedRef owner = Owner<Buffer>::make();
  Py_buffer& view = Owner<Buffer>::of(owner).view;
  take_buffer(exporter, view);
  const bool read_only = view.readonly;
  check_writable(read_only, on_readonly, "obj", "a read-only buffer");
  return shared_or_copied(lift_fresh(share(std::move(owner), view, wanted)), read_only, on_readonly);
}

// Export: TensorBuffer

namespace {

// The state of memory at the start of an export, to detect writes at its end.
struct Watched {
  bool watches = false;
  uint32_t version = 0;
  uint64_t digest = 0;
};

// The tensor at the time of construction: later calls of t_(), set_() or resize_() have no effect here. References no
// Python objects except owners of memory, so a tensor may hold its own buffer without a reference cycle.
struct TensorBuffer {
  PyObject_VAR_HEAD
  Hold hold;
  c10::VariableVersion version;  // disabled if writes do not count
  Watched watched;               // for a buffer made for one export of a tensor
  void* data;
  const Dtype* dtype;
  Py_ssize_t nbytes;
  int ndim;
  bool read_only;
  bool c_contiguous;
  bool of_tensor;  // made for one export

  // Stored after the struct.
  Py_ssize_t* shape() noexcept {
    return reinterpret_cast<Py_ssize_t*>(this + 1);
  }
  Py_ssize_t* strides() noexcept {
    return shape() + ndim;
  }

  // Lets autograd detect that saved values may have changed. Inference tensors have no version.
  void written() {
    if (version.enabled()) {
      version.bump();
    }
  }
};

// Mixes memory into a digest.
uint64_t mix(uint64_t digest, const char* from, size_t bytes) noexcept {
  uint64_t word = 0;
  for (size_t done = 0; done < bytes; done += sizeof(word)) {
    word = 0;
    memcpy(&word, from + done, std::min(sizeof(word), bytes - done));
    digest = std::rotl((digest ^ word) * 0x9E3779B97F4A7C15U, 29);  // high bits reach the next product, too
  }
  return digest;
}

// A digest of the elements from `axis` on, without the gaps between them.
uint64_t digest_of(TensorBuffer* buffer, const char* from, int axis = 0, uint64_t digest = 0) noexcept {
  if (buffer->c_contiguous) {
    return mix(digest, from, static_cast<size_t>(buffer->nbytes));
  }
  if (axis == buffer->ndim) {
    return mix(digest, from, buffer->dtype->size);
  }
  for (Py_ssize_t i = 0; i < buffer->shape()[axis]; ++i) {
    digest = digest_of(buffer, from + i * buffer->strides()[axis], axis + 1, digest);
  }
  return digest;
}

bool has_changed(TensorBuffer* buffer) noexcept {
  const Watched& watched = buffer->watched;
  // If the version has changed, torch wrote and incremented it itself.
  return watched.watches && watched.version == buffer->version.current_version() &&
         watched.digest != digest_of(buffer, static_cast<const char*>(buffer->data));
}

static_assert(sizeof(TensorBuffer) % alignof(Py_ssize_t) == 0 && sizeof(Py_ssize_t) == sizeof(int64_t));

alignas(std::max_align_t) char nothing[1];  // the address of empty tensors without memory

TensorBuffer* cast(PyObject* self) noexcept {
  return reinterpret_cast<TensorBuffer*>(self);
}

// A free list of one buffer with room for `kept_dim` dimensions, because most buffers live for one call. The GIL
// guards it. A free-threaded Python has per-thread allocators, which are as fast.
constexpr int kept_dim = 4;
TensorBuffer* kept = nullptr;

TensorBuffer* allocate(int ndim, PyTypeObject* type) {
  if (!free_threaded && kept && ndim <= kept_dim) {
    TensorBuffer* buffer = std::exchange(kept, nullptr);
    return reinterpret_cast<TensorBuffer*>(PyObject_InitVar(reinterpret_cast<PyVarObject*>(buffer), type, kept_dim));
  }
  return PyObject_NewVar(TensorBuffer, type, std::max(ndim, kept_dim));
}

void dealloc(PyObject* self) noexcept {
  TensorBuffer* buffer = cast(self);
  if (has_changed(buffer)) {
    buffer->written();
  }
  buffer->hold.~Hold();
  buffer->version.~VariableVersion();
  if (!free_threaded && !kept && Py_SIZE(self) == kept_dim) {
    kept = buffer;
  } else {
    PyObject_Free(self);
  }
}

// Whether the elements are dense, with the first axis varying fastest.
bool is_f_contiguous(TensorBuffer* buffer) noexcept {
  Py_ssize_t step = buffer->dtype->size;
  for (int d = 0; d < buffer->ndim && buffer->nbytes != 0; ++d) {
    if (buffer->shape()[d] != 1 && buffer->strides()[d] != step) {
      return false;
    }
    step *= buffer->shape()[d];
  }
  return true;
}

// Sets the strides of a contiguous buffer. Axis `first` varies fastest, and `next` (1 or -1) leads to the next axis.
void set_contiguous(TensorBuffer* buffer, int first, int next) noexcept {
  Py_ssize_t step = buffer->dtype->size;
  for (int d = first; 0 <= d && d < buffer->ndim; d += next) {
    buffer->strides()[d] = step;
    step *= std::max<Py_ssize_t>(buffer->shape()[d], 1);
  }
}

// PyObject_GetBuffer: an exporter that cannot meet the request "MUST raise BufferError, set view->obj to NULL and
// return -1".
int refuse(Py_buffer* view, const char* message) noexcept {
  PyErr_SetString(PyExc_BufferError, message);
  view->obj = nullptr;
  return -1;
}

constexpr bool asks_for(int flags, int all) noexcept {
  return (flags & all) == all;
}

TensorBuffer* buffer_of(const at::Tensor& tensor, Access access, bool of_tensor);

PyObject* make(PyTypeObject*, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"tensor", "readonly", nullptr};
  PyObject* tensor;
  int read_only = 0;
  if (!PyArg_ParseTupleAndKeywords(
          arguments, keywords, "O|$p:TensorBuffer", const_cast<char**>(names), &tensor, &read_only)) {
    return nullptr;
  }
  return guarded([&] { return reinterpret_cast<PyObject*>(buffer_of(tensor_of(tensor), access(read_only), false)); });
}

// Reads a memoryview's attribute.
PyObject* described(PyObject* self, void* name) {
  const OwnedRef view(PyMemoryView_FromObject(self));
  return view ? PyObject_GetAttrString(view.get(), static_cast<const char*>(name)) : nullptr;
}

#define INTEROP_DESCRIBED(name, doc) {name, described, nullptr, doc, const_cast<char*>(name)}
PyGetSetDef attributes[] = {
    INTEROP_DESCRIBED("format", "The format of an element, as the struct module has it."),
    INTEROP_DESCRIBED("itemsize", "Bytes of an element."),
    INTEROP_DESCRIBED("nbytes", "Bytes of all elements."),
    INTEROP_DESCRIBED("ndim", "The number of dimensions."),
    INTEROP_DESCRIBED("shape", "The sizes of the dimensions."),
    INTEROP_DESCRIBED("strides", "Bytes from one element to the next, by dimension."),
    INTEROP_DESCRIBED("readonly", "Whether the memory cannot be written to."),
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
#undef INTEROP_DESCRIBED

int export_buffer(PyObject* self, Py_buffer* view, int flags) noexcept;

PyBufferProcs procs = {export_buffer, nullptr};

// clang-format off: see owner.h
PyTypeObject buffer_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0)
    .tp_name = "interop.TensorBuffer",
    .tp_basicsize = sizeof(TensorBuffer),
    .tp_itemsize = 2 * sizeof(Py_ssize_t),
    .tp_dealloc = dealloc,
    .tp_as_buffer = &procs,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = PyDoc_STR(
        "TensorBuffer(tensor, *, readonly=False)\n--\n\n"
        "A tensor's memory for consumers of buffers: memoryview, bytes, files, typed memoryviews of Cython.\n\n"
        "It keeps the shape, strides and dtype of the tensor at its construction. It shares the tensor's memory, and\n"
        "owns it together with the tensor. If the tensor is resized later, the tensor gets other memory.\n\n"
        "A writable export (PyBUF_WRITABLE) increments the tensor's version. Memory is read-only if it has\n"
        "an axis of stride 0, as after expand(), or if its owner is read-only.\n\n"
        "Parameters\n----------\n"
        "tensor : torch.Tensor\n"
        "    A tensor on the CPU, of up to 64 dimensions and a dtype that has a format: not bfloat16, float8, complex32.\n"
        "readonly : bool\n"
        "    Export read-only memory. The tensor may then require grad.\n\n"
        "Raises\n------\n"
        "TypeError, ValueError, RuntimeError\n    As to_numpy does.\n"
        "BufferError\n    From an export that cannot be made as requested.\n"),
    .tp_getset = attributes,
    .tp_new = make,
};
// clang-format on

const Hold* hold_behind(const Py_buffer& view) noexcept {
  PyObject* exporter = view.obj;
  if (exporter && PyMemoryView_Check(exporter)) {
    exporter = PyMemoryView_GET_BASE(exporter);
  }
  // A watched buffer must live until its export ends, because its destructor checks for writes.
  const bool ours = exporter && Py_IS_TYPE(exporter, &buffer_type) && !cast(exporter)->watched.watches;
  return ours ? &cast(exporter)->hold : nullptr;
}

// Why `flags` request something that the buffer lacks; null if it lacks nothing.
const char* lacking(TensorBuffer* buffer, int flags) noexcept {
  if (asks_for(flags, PyBUF_WRITABLE) && buffer->read_only) {
    return "the tensor's memory is exported read-only; copy the tensor with .clone() to write to it";
  }
  if (asks_for(flags, PyBUF_C_CONTIGUOUS) && !buffer->c_contiguous) {
    return "the tensor is not C-contiguous; copy it with .contiguous()";
  }
  if (asks_for(flags, PyBUF_F_CONTIGUOUS) && !is_f_contiguous(buffer)) {
    return "the tensor is not Fortran-contiguous; copy it with .mT.contiguous().mT";
  }
  if (asks_for(flags, PyBUF_ANY_CONTIGUOUS) && !buffer->c_contiguous && !is_f_contiguous(buffer)) {
    return "the tensor is not contiguous; copy it with .contiguous()";
  }
  // PyBUF_STRIDES: a consumer that requests no strides assumes C-contiguous memory.
  if (!asks_for(flags, PyBUF_STRIDES) && !buffer->c_contiguous) {
    return "the tensor is not C-contiguous, and the consumer requests no strides; copy it with .contiguous()";
  }
  // PyBUF_FORMAT combines with any flag except PyBUF_SIMPLE, which means unsigned bytes.
  if (!asks_for(flags, PyBUF_ND) && asks_for(flags, PyBUF_FORMAT)) {
    return "the consumer requests a format but no shape; without a shape, memory is bytes";
  }
  return nullptr;
}

// Fills `view` exactly as `flags` request, or fails.
int fill_buffer(TensorBuffer* buffer, Py_buffer* view, int flags) noexcept {
  // memoryview takes memory as it is: every layout, read-only or not.
  if (flags != PyBUF_FULL_RO) {
    if (const char* message = lacking(buffer, flags)) {
      return refuse(view, message);
    }
  }
  const bool shaped = asks_for(flags, PyBUF_ND);
  // Py_buffer.ndim: if it is 0, shape, strides and suboffsets "MUST be NULL".
  const bool dimensions = shaped && buffer->ndim > 0;
  view->buf = buffer->data;
  view->obj = Py_NewRef(reinterpret_cast<PyObject*>(buffer));
  view->len = buffer->nbytes;
  view->itemsize = buffer->dtype->size;
  view->readonly = buffer->read_only;
  view->ndim = shaped ? buffer->ndim : 1;
  view->format = asks_for(flags, PyBUF_FORMAT) ? const_cast<char*>(buffer->dtype->format) : nullptr;
  view->shape = dimensions ? buffer->shape() : nullptr;
  view->strides = dimensions && asks_for(flags, PyBUF_STRIDES) ? buffer->strides() : nullptr;
  view->suboffsets = nullptr;
  view->internal = nullptr;
  return 0;
}

int export_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  const bool writes = asks_for(flags, PyBUF_WRITABLE);
  if (writes && cast(self)->of_tensor) {
    return refuse(view, "this buffer belongs to one export of a tensor; request writable memory from the tensor");
  }
  const int result = fill_buffer(cast(self), view, flags);
  if (writes && result == 0) {
    cast(self)->written();
  }
  return result;
}

// A buffer over `tensor`, with its version or for one export.
TensorBuffer* buffer_of(const at::Tensor& tensor, Access access, bool of_tensor) {
  const Exported exported = check_counted_export(tensor, "tensor", access);
  const Dtype* dtype = find_dtype(tensor.scalar_type());
  TORCH_CHECK_TYPE(
      dtype && dtype->format, "argument 'tensor' must have a dtype that the buffer protocol has a format for, got ",
      interop::detail::dtype_name(tensor.scalar_type()), "; take its bits with .view(torch.",
      tensor.itemsize() == 1   ? "uint8"
      : tensor.itemsize() == 2 ? "uint16"
                               : "float16",
      ")");
  const at::IntArrayRef sizes = tensor.sizes();
  const at::IntArrayRef strides = tensor.strides();
  TORCH_CHECK_VALUE(
      sizes.size() <= PyBUF_MAX_NDIM, "argument 'tensor' must have at most ", PyBUF_MAX_NDIM,
      " dimensions, the limit of buffers, got ", sizes.size(), "; join some with .flatten()");
  Hold hold = Hold::of(*exported.storage);
  TensorBuffer* buffer = checked(allocate(static_cast<int>(sizes.size()), &buffer_type));
  new (&buffer->hold) Hold(std::move(hold));
  new (&buffer->version) c10::VariableVersion(c10::VariableVersion::DISABLED);
  new (&buffer->watched) Watched();
  buffer->data = exported.data ? exported.data : nothing;
  buffer->dtype = dtype;
  buffer->ndim = static_cast<int>(sizes.size());
  buffer->read_only = !exported.writable;
  buffer->of_tensor = of_tensor;
  if (!of_tensor) {
    buffer->version = tensor.unsafeGetTensorImpl()->version_counter();
  }
  const Py_ssize_t itemsize = dtype->size;
  const Py_ssize_t numel = tensor.numel();
  buffer->nbytes = numel * itemsize;
  Py_ssize_t* shape = buffer->shape();
  Py_ssize_t* steps = buffer->strides();
  std::copy(sizes.begin(), sizes.end(), shape);
  // Along axes of size 1, consumers expect a contiguous buffer's strides if it is contiguous, as from NumPy.
  buffer->c_contiguous = numel == 0 || exported.contiguous;
  if (buffer->c_contiguous) {
    set_contiguous(buffer, buffer->ndim - 1, -1);
    return buffer;
  }
  std::transform(strides.begin(), strides.end(), steps, [=](int64_t stride) { return stride * itemsize; });
  if (is_f_contiguous(buffer)) {
    set_contiguous(buffer, 0, 1);
  }
  return buffer;
}

std::atomic<Protocol> setting{Protocol::off};

// memoryview requests everything, and does not say whether anyone will write. It lives as long as its consumer, such
// as NumPy, needs the memory.
constexpr bool asks_for_all(int flags) noexcept {
  return asks_for(flags, PyBUF_FULL_RO);
}

// Larger memory is not watched, because exporting a large tensor would take as long as copying it.
constexpr Py_ssize_t most_watched = 1 << 20;

// torch.Tensor as an exporter: fills `view` as `flags` request. Returns 0, or -1 with a BufferError set; throws if
// the tensor's memory is unfit. The request is redirected to a TensorBuffer, which becomes the object in `view`
// (bf_getbuffer, "Redirect"). So the buffer is released correctly even if the protocol has been disabled in the
// meantime.
//
// Requesting writable memory is not yet a write: numpy.frombuffer, numba and Cython request it and only read. So the
// memory is compared before and after if autograd may have saved the tensor. In that case something besides the
// Python object owns the tensor (SavedVariable of a leaf), or its version counter (SavedVariable of any other tensor,
// and views).
int export_tensor(const at::Tensor& tensor, Py_buffer* view, int flags) {
  const OwnedRef owned(
      reinterpret_cast<PyObject*>(
          buffer_of(tensor, asks_for(flags, PyBUF_WRITABLE) ? Access::write : Access::any, true)));
  TensorBuffer* buffer = cast(owned.get());
  if (fill_buffer(buffer, view, flags) < 0) {
    return -1;
  }
  // Pins as torch does for an array. numpy.ndarray(buffer=...) requests bytes in some order, and uses them after the
  // export, for as long as it has the tensor (PyArray_BufferConverter). Nothing tells this request from one of a
  // consumer that ends its export when it is done.
  const bool bytes = flags != PyBUF_SIMPLE && !asks_for(flags, PyBUF_FORMAT);
  if (asks_for_all(flags) || bytes) {
    pin_for_good(*tensor.storage().unsafeGetStorageImpl());
  }
  const c10::VariableVersion& version = tensor.unsafeGetTensorImpl()->version_counter();
  const bool may_write = !buffer->read_only && (asks_for(flags, PyBUF_WRITABLE) || asks_for_all(flags));
  if (!may_write || !version.enabled()) {
    return 0;
  }
  if (setting.load(std::memory_order_relaxed) == Protocol::asked) {
    tensor.unsafeGetTensorImpl()->bump_version();
  } else if (
      (!version.unique() || tensor.use_count() > 1) && buffer->nbytes <= most_watched &&
      buffer->hold.outlasts_storage()) {
    buffer->version = version;
    buffer->watched = {true, version.current_version(), digest_of(buffer, static_cast<const char*>(buffer->data))};
  }
  return 0;
}

}  // namespace

PyObject* memoryview_of_tensor(const at::Tensor& tensor, bool read_only) {
  const OwnedRef buffer(reinterpret_cast<PyObject*>(buffer_of(tensor, access(read_only), false)));
  PyObject* view = checked(PyMemoryView_FromObject(buffer.get()));
  if (!cast(buffer.get())->read_only) {
    cast(buffer.get())->written();
  }
  return view;
}

// Export: torch.Tensor

namespace {

// For messages: dtype and sizes.
std::string outline(const at::Tensor& tensor) noexcept {
  try {
    return c10::str(interop::detail::dtype_name(tensor.scalar_type()), " with sizes ", tensor.sizes());
  } catch (...) {  // some tensors have neither
    return "unknown dtype and sizes";
  }
}

// The attributes by which a class decides how it becomes an array. ready_buffers() sets the objects below.
constexpr const char* deciding[] = {"__array__", "__array_interface__", "__array_struct__",
                                    "numpy",     "__torch_function__",  "__getattribute__"};
PyObject* ordinary_names[std::size(deciding)];  // `deciding`, interned
PyObject* no_torch_function;                    // of torch.nn.Parameter

// Whether Python code decides what NumPy sees of a tensor of this class. Then the memory alone does not represent the
// tensor, and NumPy calls __array__.
bool is_overridden(PyTypeObject* type) noexcept {
  auto* ordinary = reinterpret_cast<PyTypeObject*>(THPVariableClass);
  if (type == ordinary) {
    return false;
  }
  for (PyObject* name : ordinary_names) {
    const SharedRef found = type_attribute(type, name);
    if (found.get() != type_attribute(ordinary, name).get() && found.get() != no_torch_function) {
      return true;
    }
  }
  return false;
}

// Whether a mode intercepts what NumPy would do without the buffer: a TorchFunctionMode sees __array__(), and a
// TorchDispatchMode sees its operators. The latter only counts for requests of everything, as NumPy makes them: typed
// memoryviews have no other way to the memory. The mode of torch.device and set_default_device does not count, because
// it affects new tensors only.
bool is_seen_by_mode(int flags) {
  if (asks_for_all(flags) && c10::impl::TorchDispatchModeTLS::any_modes_set()) [[unlikely]] {
    return true;
  }
  if (!at::impl::torch_function_mode_enabled()) [[likely]] {
    return false;
  }
  const OwnedRef module(PyImport_GetModule(names::torch_utils_device));  // not imported: no such mode exists
  if (!module && PyErr_Occurred()) {
    throw PythonError();
  }
  const OwnedRef context(module ? checked(PyObject_GetAttrString(module.get(), "DeviceContext")) : nullptr);
  for (int64_t i = 0; i < at::impl::PythonTorchFunctionTLS::stack_len(); ++i) {
    const auto& mode = at::impl::PythonTorchFunctionTLS::get_stack_at(i);
    if (reinterpret_cast<PyObject*>(Py_TYPE(mode->ptr(&mode->pyinterpreter()))) != context.get()) {
      return true;
    }
  }
  return false;
}

int getbuffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  const at::Tensor& tensor = reinterpret_cast<THPVariable*>(self)->cdata;
  view->obj = nullptr;
  try {
    TORCH_CHECK_TYPE(
        !is_overridden(Py_TYPE(self)), "a tensor of class ", Py_TYPE(self)->tp_name,
        ", which defines its own conversion to an array, exports no memory; call interop.as_memoryview(tensor) for "
        "the memory as it is");
    TORCH_CHECK_TYPE(
        !is_seen_by_mode(flags),
        "no tensor exports its memory while a TorchFunctionMode or TorchDispatchMode is active, which would not see "
        "it; call interop.as_memoryview(tensor)");
    if (export_tensor(tensor, view, flags) == 0) {
      return 0;
    }
  } catch (...) {
    translate_exception();
  }
  Py_CLEAR(view->obj);
  // Consumers of buffers expect BufferError for every failure; NumPy, for example, then tries other ways.
  if (!PyErr_ExceptionMatches(PyExc_MemoryError)) {
    const OwnedRef error = take_error();
    PyErr_Format(PyExc_BufferError, "%S (the tensor is %s)", error.get(), outline(tensor).c_str());
  }
  return -1;
}

// Never called, because the object in a view is a TensorBuffer. But if an exporter lacks this slot, numpy.frombuffer
// releases the buffer at once and keeps using the memory.
void releasebuffer(PyObject*, Py_buffer*) noexcept {}

#if PY_VERSION_HEX >= 0x030C0000

// From Python 3.12 on, setting the attribute __buffer__ of a class fills the slot of all its subclasses, present and
// future. The attribute must be the wrapper that Python itself makes for a slot, or the slot calls Python code. So a
// type with these slots provides the wrappers, and torch.Tensor's attributes are made from them.
int set_slots(bool enable) noexcept {
  static PyBufferProcs procs = {getbuffer, releasebuffer};
  // clang-format off: see owner.h
  static PyTypeObject pattern = {
      .ob_base = PyVarObject_HEAD_INIT(nullptr, 0)
      .tp_name = "interop._bridges.Pattern",
      .tp_basicsize = sizeof(PyObject),
      .tp_as_buffer = &procs,
      .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
  };
  // clang-format on
  if (PyType_Ready(&pattern) < 0) {
    return -1;
  }
  struct Slot {
    const char* name;
    void* function;
    PyObject* ours;  // owned, for good
  };
  static Slot slots[] = {
      {"__buffer__", reinterpret_cast<void*>(getbuffer), nullptr},
      {"__release_buffer__", reinterpret_cast<void*>(releasebuffer), nullptr}};
  for (Slot& slot : slots) {
    if (!slot.ours) {
      const OwnedRef wrapper(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&pattern), slot.name));
      slot.ours = wrapper ? PyDescr_NewWrapper(
                                reinterpret_cast<PyTypeObject*>(THPVariableClass),
                                reinterpret_cast<PyWrapperDescrObject*>(wrapper.get())->d_base, slot.function)
                          : nullptr;
      if (!slot.ours) {
        return -1;
      }
    }
    if (PyObject_SetAttrString(THPVariableClass, slot.name, enable ? slot.ours : nullptr) < 0) {
      return -1;
    }
  }
  return 0;
}

#else

// A class inherits a slot when it is created, so existing subclasses are updated one by one. CPython keeps them as
// weak references in a dictionary of the class. `__subclasses__` builds a list from it, which takes much longer.
void set_slots(PyTypeObject* type, bool enable) noexcept {
  if (PyBufferProcs* procs = type->tp_as_buffer) {
    if (enable && !procs->bf_getbuffer) {
      *procs = {getbuffer, releasebuffer};
    } else if (!enable && procs->bf_getbuffer == getbuffer) {
      *procs = {nullptr, nullptr};
    }
  }
  if (!type->tp_subclasses) {
    return;
  }
  Py_ssize_t position = 0;
  PyObject* reference;
  while (PyDict_Next(type->tp_subclasses, &position, nullptr, &reference)) {
    PyObject* subclass = PyWeakref_GET_OBJECT(reference);
    if (subclass != Py_None) {
      set_slots(reinterpret_cast<PyTypeObject*>(subclass), enable);
    }
  }
}

int set_slots(bool enable) noexcept {
  set_slots(reinterpret_cast<PyTypeObject*>(THPVariableClass), enable);
  return 0;
}

#endif

}  // namespace

Protocol protocol() noexcept {
  return setting.load(std::memory_order_relaxed);
}

int set_protocol(Protocol wanted) noexcept {
  const bool enable = wanted != Protocol::off;
  // One call at a time: interop/_bridges.pyx holds a lock.
  if (enable != (protocol() != Protocol::off) && set_slots(enable) < 0) {
    return -1;
  }
  setting.store(wanted, std::memory_order_relaxed);
  return 0;
}

PyTypeObject* tensor_buffer_type() noexcept {
  return &buffer_type;
}

int ready_buffers() noexcept {
  for (size_t i = 0; i < std::size(deciding); ++i) {
    ordinary_names[i] = PyUnicode_InternFromString(deciding[i]);
    if (!ordinary_names[i]) {
      return -1;
    }
  }
  const OwnedRef torch_c(PyImport_ImportModule("torch._C"));
  if (!torch_c) {
    return -1;
  }
  no_torch_function = PyObject_GetAttrString(torch_c.get(), "_disabled_torch_function_impl");
  return !no_torch_function || Owner<Buffer>::ready() < 0 || PyType_Ready(&buffer_type) < 0 ? -1 : 0;
}

}  // namespace interop::bridges
