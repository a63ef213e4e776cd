// Buffers over the memory of tensors.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>

namespace interop::bridges {

// New references. A TensorBuffer, and a memoryview of one; the latter counts up the version if it can be written to.
PyObject* buffer_of_tensor(const at::Tensor& tensor, bool read_only);
PyObject* memoryview_of_tensor(const at::Tensor& tensor, bool read_only);

// What an exporter does: fills `view` as `flags` ask for. Returns 0, or -1 with a BufferError set; throws what makes
// the tensor's memory unfit. The buffer belongs to a TensorBuffer, which is the object in `view`.
int export_tensor(const at::Tensor& tensor, Py_buffer* view, int flags);

// The type itself, borrowed; null, and an error is set, if it cannot be made. To be called once at import.
PyTypeObject* ready_tensor_buffer() noexcept;

}  // namespace interop::bridges
