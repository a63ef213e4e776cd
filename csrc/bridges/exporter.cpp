// See exporter.h.
#include "exporter.h"

#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <new>
#include <utility>

#include "export.h"
#include "foreign.h"
#include "interop/bridges/dtypes.h"
#include "interop/exceptions.h"
#include "interop/tensor.h"
#include "memory.h"

namespace interop::bridges {

namespace {

// The tensor as it was when this was made: a later t_(), set_() or resize_() of the tensor does not show. It refers to
// no Python object but those that own memory, so a tensor may hold its own buffer without making a cycle.
struct TensorBuffer {
  PyObject_VAR_HEAD Hold hold;
  c10::VariableVersion version;  // disabled in a buffer that was made for one export of a tensor
  void* data;
  const Dtype* dtype;
  Py_ssize_t nbytes;
  int ndim;
  bool read_only;
  bool c_contiguous;
  bool of_tensor;  // made for one export

  // Behind the struct.
  Py_ssize_t* shape() noexcept {
    return reinterpret_cast<Py_ssize_t*>(this + 1);
  }
  Py_ssize_t* strides() noexcept {
    return shape() + ndim;
  }

  // Autograd finds out that values which it has saved may have changed. Inference tensors are not watched.
  void written() {
    if (version.enabled()) {
      version.bump();
    }
  }
};
static_assert(sizeof(TensorBuffer) % alignof(Py_ssize_t) == 0 && sizeof(Py_ssize_t) == sizeof(int64_t));

alignas(std::max_align_t) char nothing[1];  // where empty tensors without memory begin

TensorBuffer* cast(PyObject* self) noexcept {
  return reinterpret_cast<TensorBuffer*>(self);
}

// The last one that died, with room for `kept_dim` dimensions: most live for one call. With the GIL.
constexpr int kept_dim = 4;
TensorBuffer* kept = nullptr;

TensorBuffer* allocate(int ndim, PyTypeObject* type) {
  if (kept && ndim <= kept_dim) {
    TensorBuffer* buffer = std::exchange(kept, nullptr);
    return reinterpret_cast<TensorBuffer*>(PyObject_InitVar(reinterpret_cast<PyVarObject*>(buffer), type, kept_dim));
  }
  return PyObject_NewVar(TensorBuffer, type, std::max(ndim, kept_dim));
}

void dealloc(PyObject* self) {
  TensorBuffer* buffer = cast(self);
  buffer->hold.~Hold();
  buffer->version.~VariableVersion();
  if (!kept && Py_SIZE(self) == kept_dim) {
    kept = buffer;
  } else {
    PyObject_Free(self);
  }
}

// Whether the elements lie one after the other, the first axis varying fastest.
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

// Gives the buffer the strides of a contiguous one, the axis `first` varying fastest, and then those that follow it.
void set_contiguous(TensorBuffer* buffer, int first, int next) noexcept {
  Py_ssize_t step = buffer->dtype->size;
  for (int d = first; 0 <= d && d < buffer->ndim; d += next) {
    buffer->strides()[d] = step;
    step *= std::max<Py_ssize_t>(buffer->shape()[d], 1);
  }
}

int refuse(Py_buffer* view, const char* message) noexcept {
  PyErr_SetString(PyExc_BufferError, message);
  view->obj = nullptr;
  return -1;
}

constexpr bool asks_for(int flags, int all) noexcept {
  return (flags & all) == all;
}

PyObject* make(PyTypeObject*, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"tensor", "readonly", nullptr};
  PyObject* tensor;
  int read_only = 0;
  if (!PyArg_ParseTupleAndKeywords(
          arguments, keywords, "O|$p:TensorBuffer", const_cast<char**>(names), &tensor, &read_only)) {
    return nullptr;
  }
  if (!is_tensor(tensor)) {
    return PyErr_Format(
        PyExc_TypeError,
        "argument 'tensor' must be a torch.Tensor, got %.200s; make one with torch.as_tensor(tensor)",
        Py_TYPE(tensor)->tp_name);
  }
  try {
    return buffer_of_tensor(reinterpret_cast<THPVariable*>(tensor)->cdata, read_only);
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}

// What a memoryview of it says.
PyObject* described(PyObject* self, void* name) {
  PyObject* view = PyMemoryView_FromObject(self);
  PyObject* value = view ? PyObject_GetAttrString(view, static_cast<const char*>(name)) : nullptr;
  Py_XDECREF(view);
  return value;
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

PyTypeObject tensor_buffer_type = {
    .ob_base = {.ob_base = {.ob_refcnt = 1, .ob_type = nullptr}, .ob_size = 0},
    .tp_name = "interop.TensorBuffer",
    .tp_basicsize = sizeof(TensorBuffer),
    .tp_itemsize = 2 * sizeof(Py_ssize_t),
    .tp_dealloc = dealloc,
    .tp_as_buffer = &procs,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = PyDoc_STR(
        "TensorBuffer(tensor, *, readonly=False)\n--\n\n"
        "A tensor's memory for whoever takes buffers: memoryview, bytes, files, typed memoryviews of Cython.\n\n"
        "It has the shape, strides and dtype that the tensor had when it was made, and shares its memory, which it\n"
        "owns together with the tensor. If the tensor is resized meanwhile, it gets memory of its own.\n\n"
        "An export that is asked for to be written to (PyBUF_WRITABLE) counts up the tensor's version. Memory whose "
        "elements overlap, or whose owner is read-only, is read-only.\n\n"
        "Parameters\n----------\n"
        "tensor : torch.Tensor\n"
        "    On the CPU, of up to 64 dimensions, of a dtype that has a format: all but bfloat16, float8, complex32.\n"
        "readonly : bool\n"
        "    Export read-only memory. Then the tensor may require grad.\n\n"
        "Raises\n------\n"
        "TypeError, ValueError, RuntimeError\n    As to_numpy does.\n"
        "BufferError\n    From an export that cannot be as it was asked for.\n"),
    .tp_getset = attributes,
    .tp_new = make,
};

int fill_buffer(TensorBuffer* buffer, Py_buffer* view, int flags) noexcept {
  if (asks_for(flags, PyBUF_WRITABLE) && buffer->read_only) {
    return refuse(view, "the tensor's memory is exported read-only; copy the tensor with .clone() to write to it");
  }
  if (asks_for(flags, PyBUF_C_CONTIGUOUS) && !buffer->c_contiguous) {
    return refuse(view, "the tensor is not C-contiguous; copy it with .contiguous()");
  }
  if (asks_for(flags, PyBUF_F_CONTIGUOUS) && !is_f_contiguous(buffer)) {
    return refuse(view, "the tensor is not Fortran-contiguous; copy it with .mT.contiguous().mT");
  }
  if (asks_for(flags, PyBUF_ANY_CONTIGUOUS) && !buffer->c_contiguous && !is_f_contiguous(buffer)) {
    return refuse(view, "the tensor is not contiguous; copy it with .contiguous()");
  }
  if (!asks_for(flags, PyBUF_STRIDES) && !buffer->c_contiguous) {
    return refuse(view, "the tensor is not C-contiguous, and no strides were asked for; copy it with .contiguous()");
  }
  const bool shaped = asks_for(flags, PyBUF_ND);
  if (!shaped && asks_for(flags, PyBUF_FORMAT)) {
    return refuse(view, "a format was asked for, but no shape: then memory is bytes");
  }
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
    return refuse(view, "this buffer belongs to one export of a tensor; ask the tensor for memory to write to");
  }
  const int result = fill_buffer(cast(self), view, flags);
  if (writes && result == 0) {
    cast(self)->written();
  }
  return result;
}

// `tensor`'s, with its version or for one export.
TensorBuffer* buffer_of(const at::Tensor& tensor, bool read_only, bool of_tensor) {
  const Exported exported = check_export(tensor, "tensor", read_only);
  const Dtype* dtype = find_dtype(tensor.scalar_type());
  TORCH_CHECK_TYPE(
      dtype && dtype->format,
      "argument 'tensor' must have a dtype that the buffer protocol has a format for, got ",
      interop::detail::dtype_name(tensor.scalar_type()),
      "; take its bits with .view(torch.",
      tensor.itemsize() == 1   ? "uint8"
      : tensor.itemsize() == 2 ? "uint16"
                               : "float16",
      ")");
  const at::IntArrayRef sizes = tensor.sizes();
  const at::IntArrayRef strides = tensor.strides();
  TORCH_CHECK_VALUE(
      sizes.size() <= PyBUF_MAX_NDIM,
      "argument 'tensor' must have at most ",
      PyBUF_MAX_NDIM,
      " dimensions, the limit of buffers, got ",
      sizes.size(),
      "; join some with .flatten()");
  TensorBuffer* buffer = allocate(static_cast<int>(sizes.size()), &tensor_buffer_type);
  if (!buffer) {
    throw PythonError();
  }
  // The memory is raw: nothing may throw until both are constructed.
  new (&buffer->version) c10::VariableVersion(c10::VariableVersion::DISABLED);
  try {
    new (&buffer->hold) Hold(Hold::of(*exported.storage));
  } catch (...) {
    new (&buffer->hold) Hold();
    Py_DECREF(buffer);
    throw;
  }
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
  for (int d = 0; d < buffer->ndim; ++d) {
    shape[d] = sizes[d];
    steps[d] = strides[d] * itemsize;
  }
  // Of an axis of size 1, consumers want the stride of a contiguous buffer where it is one, as from NumPy.
  buffer->c_contiguous = numel == 0 || tensor.is_contiguous();
  if (buffer->c_contiguous) {
    set_contiguous(buffer, buffer->ndim - 1, -1);
  } else if (is_f_contiguous(buffer)) {
    set_contiguous(buffer, 0, 1);
  }
  return buffer;
}

}  // namespace

PyObject* buffer_of_tensor(const at::Tensor& tensor, bool read_only) {
  return reinterpret_cast<PyObject*>(buffer_of(tensor, read_only, false));
}

int export_tensor(const at::Tensor& tensor, Py_buffer* view, int flags) {
  view->obj = nullptr;
  TensorBuffer* buffer = buffer_of(tensor, false, true);
  const int result = fill_buffer(buffer, view, flags);
  Py_DECREF(buffer);
  if (result == 0 && asks_for(flags, PyBUF_WRITABLE) && tensor.unsafeGetTensorImpl()->version_counter().enabled()) {
    tensor.unsafeGetTensorImpl()->bump_version();
  }
  return result;
}

PyObject* memoryview_of_tensor(const at::Tensor& tensor, bool read_only) {
  PyObject* buffer = buffer_of_tensor(tensor, read_only);
  PyObject* view = PyMemoryView_FromObject(buffer);
  if (view && !cast(buffer)->read_only) {
    cast(buffer)->written();
  }
  Py_DECREF(buffer);
  if (!view) {
    throw PythonError();
  }
  return view;
}

PyTypeObject* ready_tensor_buffer() noexcept {
  return PyType_Ready(&tensor_buffer_type) < 0 ? nullptr : &tensor_buffer_type;
}

}  // namespace interop::bridges
