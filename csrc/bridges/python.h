// The functions that interop/_bridges.pyx calls. They return new references, or null with an error set.
#pragma once

#include <Python.h>

namespace interop::bridges::python {

PyObject* from_numpy(PyObject* array, PyObject* on_readonly) noexcept;
PyObject* to_numpy(PyObject* tensor, bool force, bool readonly) noexcept;
// Whether the object is an array with elements that no other object owns, and not of a subclass. Sets no error.
bool is_new_array(PyObject* object) noexcept;
// Whether a new array is `given`, or `given` is an array in its memory.
bool is_array_of(PyObject* array, PyObject* given) noexcept;
PyObject* from_buffer(
    PyObject* exporter, PyObject* dtype, PyObject* shape, PyObject* offset, PyObject* on_readonly) noexcept;
// The buffer of an object, as from_buffer takes it; -1 with an error set. Threads take turns at CPython's own
// exporters, which count their exports without a lock.
int take_buffer(PyObject* exporter, Py_buffer* view) noexcept;
void drop_buffer(Py_buffer* view) noexcept;
PyObject* as_memoryview(PyObject* tensor, bool readonly) noexcept;
PyObject* tensor_buffer_type() noexcept;
PyObject* from_dlpack(PyObject* object, PyObject* device, PyObject* copy, PyObject* on_readonly) noexcept;
PyObject* to_dlpack(
    PyObject* tensor,
    PyObject* stream,
    PyObject* max_version,
    PyObject* dl_device,
    PyObject* copy,
    bool readonly) noexcept;
PyObject* from_cuda_array_interface(PyObject* object, PyObject* on_readonly) noexcept;
PyObject* to_cuda_array_interface(PyObject* tensor, bool readonly) noexcept;

// A builtin function that calls `function` of _bridges.pyx, which is from_numpy, to_numpy, as_memoryview or
// from_dlpack. A call with a single positional argument converts it at once. `module` is a name. `text` is bytes and
// begins with the signature.
PyObject* with_fast_path(PyObject* function, PyObject* name, PyObject* module, PyObject* text) noexcept;

// The numbers are values of Protocol in converters.h.
int set_protocol(int wanted) noexcept;
int protocol() noexcept;

// The capsule for interop/bridges.h. Call this first: it also readies the types.
PyObject* make_capsule() noexcept;

}  // namespace interop::bridges::python
