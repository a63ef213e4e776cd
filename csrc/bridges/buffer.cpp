// See buffer.h.
#include "buffer.h"

#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>

#include <string>

#include "copy.h"
#include "foreign.h"
#include "interop/bridges/format.h"
#include "interop/tensor.h"
#include "numpy.h"
#include "owner.h"
#include "read_only.h"
#include "reference.h"

namespace interop::bridges {

namespace {

// Holds an exported buffer for as long as a storage needs it: a bytearray cannot be resized, nor a mmap closed.
struct BufferOwner {
  PyObject_HEAD
  Py_buffer view;
};

void dealloc(PyObject* self) {
  PyBuffer_Release(&reinterpret_cast<BufferOwner*>(self)->view);
  PyObject_Free(self);
}

PyTypeObject buffer_owner_type = {
    .ob_base = {.ob_base = {.ob_refcnt = 1, .ob_type = nullptr}, .ob_size = 0},
    .tp_name = "interop._bridges.Buffer",
    .tp_basicsize = sizeof(BufferOwner),
    .tp_dealloc = dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "Holds the buffer of an object for a tensor that shares it.",
};

constexpr Subject subject{"obj", "copy it with bytearray(obj) and give dtype= and shape="};

using Sizes = c10::SmallVector<int64_t, 8>;

// What an exporter says, if it is possible at all: sizes and strides in bytes.
struct Axes {
  Sizes sizes;
  Sizes strides;
};

Axes axes_of(const Py_buffer& view) {
  TORCH_CHECK_VALUE(
      0 <= view.ndim && view.ndim <= max_dim,
      "argument 'obj' must have 0 to ",
      max_dim,
      " dimensions, got a buffer with ",
      view.ndim);
  TORCH_CHECK_VALUE(
      view.itemsize > 0 && view.len >= 0,
      "argument 'obj' must have elements of at least 1 byte, got a buffer with item size ",
      view.itemsize,
      " and length ",
      view.len);
  Axes axes;
  int64_t bytes = view.itemsize;
  bool overflows = false;
  bool empty = false;
  for (int d = 0; d < view.ndim; ++d) {
    TORCH_CHECK_VALUE(
        view.shape || view.ndim == 1,
        "argument 'obj' must say its shape, got a buffer without, with ",
        view.ndim,
        " axes");
    const int64_t size = view.shape ? view.shape[d] : view.len / view.itemsize;
    TORCH_CHECK_VALUE(size >= 0, "argument 'obj' must have sizes >= 0, got ", size, " on axis ", d);
    TORCH_CHECK_VALUE(
        !view.suboffsets || view.suboffsets[d] < 0,
        "argument 'obj' must have its elements in one piece, got a buffer whose axis ",
        d,
        " leads through pointers; ",
        subject.advice);
    axes.sizes.push_back(size);
    overflows |= __builtin_mul_overflow(bytes, size, &bytes);
    empty |= size == 0;
  }
  TORCH_CHECK_VALUE(
      (empty && view.len == 0) || (!empty && !overflows && bytes == view.len),
      "argument 'obj' must have the length that its shape asks for, got a buffer of ",
      view.len,
      " bytes with shape ",
      at::IntArrayRef(axes.sizes),
      " and item size ",
      view.itemsize);
  axes.strides.resize(view.ndim);
  int64_t step = view.itemsize;
  for (int d = view.ndim - 1; d >= 0; --d) {
    axes.strides[d] = view.strides ? view.strides[d] : step;
    step = empty ? step : step * axes.sizes[d];  // within view.len
  }
  return axes;
}

// The shape for a contiguous piece of memory of `bytes` bytes: what was asked for, with its -1 filled in.
Sizes shape_for(const BufferView& wanted, int64_t bytes, const Dtype& dtype) {
  const int64_t room = bytes / dtype.size;
  if (!wanted.has_shape) {
    TORCH_CHECK_VALUE(
        bytes % dtype.size == 0,
        "argument 'obj' must have a whole number of elements of ",
        static_cast<int>(dtype.size),
        " bytes, got ",
        bytes,
        " bytes after the offset; say how many with shape=");
    return {room};
  }
  Sizes sizes(wanted.shape.begin(), wanted.shape.end());
  int64_t count = 1;
  bool overflows = false;
  bool empty = false;
  int64_t* open = nullptr;
  for (int64_t& size : sizes) {
    if (size == -1) {
      TORCH_CHECK_VALUE(!open, "argument 'shape' must have one -1 at most, got ", wanted.shape);
      open = &size;
      continue;
    }
    TORCH_CHECK_VALUE(size >= 0, "argument 'shape' must have sizes >= 0, and -1 once, got ", wanted.shape);
    empty |= size == 0;
    overflows |= __builtin_mul_overflow(count, size, &count);
  }
  if (empty) {
    count = 0;
    overflows = false;
  }
  if (open) {
    TORCH_CHECK_VALUE(
        !overflows && count > 0 && bytes % dtype.size == 0 && room % count == 0,
        "argument 'shape' must divide the memory, got ",
        wanted.shape,
        " for ",
        bytes,
        " bytes after the offset and elements of ",
        static_cast<int>(dtype.size));
    *open = room / count;
    return sizes;
  }
  TORCH_CHECK_VALUE(
      !overflows && count <= room,
      "argument 'shape' must fit into the memory, got ",
      wanted.shape,
      " for ",
      bytes,
      " bytes after the offset and elements of ",
      static_cast<int>(dtype.size));
  return sizes;
}

const Dtype& wanted_dtype(const BufferView& wanted, const Format& format, const char* text) {
  TORCH_CHECK_TYPE(
      !format.pointers,
      "argument 'obj' must have numbers for elements, got a buffer with format '",
      text,
      "': ",
      format.reason);
  if (wanted.dtype != c10::ScalarType::Undefined) {
    const Dtype* dtype = find_dtype(wanted.dtype);
    TORCH_CHECK_TYPE(
        dtype,
        "argument 'dtype' must be a dtype whose elements lie in memory as they are, got ",
        c10::toString(wanted.dtype),
        "; take its bits with dtype=torch.uint8");
    return *dtype;
  }
  TORCH_CHECK_TYPE(
      format.dtype,
      "argument 'obj' must have elements that torch has, got a buffer with format '",
      text,
      "': ",
      format.reason,
      "; say what its bytes are with dtype=");
  return *format.dtype;
}

at::Tensor share(BufferOwner* owner, Reference& reference, void* data, const Layout& layout, const Dtype& dtype) {
  check_pointer(subject, data, dtype, layout);
  return tensor_over(
      {data, reference.give(), owner->view.readonly ? &drop_read_only_owner : &drop_owner, c10::kCPU}, layout, dtype);
}

at::Tensor share(BufferOwner* owner, Reference& reference, const BufferView& wanted) {
  const Py_buffer& view = owner->view;
  const char* text = view.format ? view.format : "B";
  const Format format = read_format(view.format);
  const Dtype& dtype = wanted_dtype(wanted, format, text);
  Axes axes = axes_of(view);
  TORCH_CHECK_VALUE(
      !format.dtype || format.itemsize == view.itemsize,
      "argument 'obj' must have the item size that its format says, got ",
      view.itemsize,
      " bytes for format '",
      text,
      "'");
  const bool has_elements = format.dtype && format.dtype->size == dtype.size;
  const bool whole = wanted.offset == 0 && !wanted.has_shape && (has_elements || dtype.size == view.itemsize);
  if (whole) {
    if (has_elements) {  // the elements of a subarray are further axes
      int64_t step = view.itemsize;
      for (const int64_t size : format.sizes) {
        step /= size;  // not 0: then the item size would be 0
        axes.sizes.push_back(size);
        axes.strides.push_back(step);
      }
    }
    const Layout layout(
        subject, static_cast<int>(axes.sizes.size()), axes.sizes.data(), axes.strides.data(), dtype, Unit::bytes);
    return share(owner, reference, view.buf, layout, dtype);
  }
  TORCH_CHECK_VALUE(
      PyBuffer_IsContiguous(&view, 'C'),
      "argument 'obj' must be contiguous to be taken in another dtype, shape or from an offset; ",
      subject.advice);
  TORCH_CHECK_VALUE(
      0 <= wanted.offset && wanted.offset <= view.len,
      "argument 'offset' must be from 0 to ",
      view.len,
      ", the buffer's length in bytes, got ",
      wanted.offset);
  const Sizes sizes = shape_for(wanted, view.len - wanted.offset, dtype);
  const Layout layout(
      Subject{"shape", "give a smaller one"},
      static_cast<int>(sizes.size()),
      sizes.data(),
      static_cast<const int64_t*>(nullptr),
      dtype,
      Unit::bytes);
  return share(owner, reference, static_cast<char*>(view.buf) + wanted.offset, layout, dtype);
}

}  // namespace

at::Tensor tensor_of_buffer(PyObject* exporter, const BufferView& wanted, OnReadonly on_readonly) {
  if (!PyObject_CheckBuffer(exporter)) {
    PyErr_Format(
        PyExc_TypeError,
        "argument 'obj' must support the buffer protocol, got %.200s; try %s first",
        Py_TYPE(exporter)->tp_name,
        is_tensor(exporter) ? "interop.as_memoryview(obj)" : "numpy.asarray(obj)");
    throw PythonError();
  }
  // The class of masked arrays is made by Python code. Those of most exporters are not, and need not be asked about.
  if (PyType_HasFeature(Py_TYPE(exporter), Py_TPFLAGS_HEAPTYPE)) {
    check_unmasked(exporter, "obj");
  }
  auto* owner = PyObject_New(BufferOwner, &buffer_owner_type);
  if (!owner) {
    throw PythonError();
  }
  owner->view = Py_buffer{};
  Reference reference(reinterpret_cast<PyObject*>(owner));
  if (PyObject_GetBuffer(exporter, &owner->view, PyBUF_FULL_RO) < 0) {
    owner->view.obj = nullptr;
    throw PythonError();
  }
  const bool read_only = owner->view.readonly;
  check_writable(read_only, on_readonly, "obj", "a read-only buffer");
  return shared_or_copied(lifted(share(owner, reference, wanted)), read_only, on_readonly);
}

int ready_buffer_owner() noexcept {
  return PyType_Ready(&buffer_owner_type);
}

}  // namespace interop::bridges
