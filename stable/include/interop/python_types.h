// The Python objects of dtypes, devices, layouts and memory formats. They are identified by class and name, because
// their structs are private to torch. Everything here needs the GIL.
#pragma once

#include <Python.h>

#include <string>

#include "ATen/core/Generator.h"
#include "interop/device.h"
#include "interop/stable/python_call.h"

namespace interop {

namespace detail {

inline bool is_of(PyObject* object, const char* type) noexcept {
  const OwnedRef found(PyObject_GetAttrString(stable::torch_module, type));
  PyErr_Clear();
  return found && PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(found.get()));
}

// The enum value below `end` that to_python() converts to this object.
template <class Enum>
Enum value_of(PyObject* object, int end) {
  for (int i = 0; i < end; ++i) {
    const OwnedRef candidate(stable::to_python(static_cast<Enum>(i)));
    if (candidate.get() == object) {
      return static_cast<Enum>(i);
    }
  }
  stable::raise(stable::Kind::value, stable::detail::text_of(object), " is not known here");
}

}  // namespace detail

inline bool is_dtype(PyObject* object) noexcept {
  return detail::is_of(object, "dtype");
}
inline bool is_device(PyObject* object) noexcept {
  return detail::is_of(object, "device");
}
inline bool is_layout(PyObject* object) noexcept {
  return detail::is_of(object, "layout");
}
inline bool is_memory_format(PyObject* object) noexcept {
  return detail::is_of(object, "memory_format");
}
inline bool is_generator(PyObject* object) noexcept {
  return detail::is_of(object, "Generator");
}

using stable::dtype_of;
inline at::Device device_of(PyObject* object) {
  return at::Device(stable::detail::text_of(object));
}
inline at::Layout layout_of(PyObject* object) {
  return detail::value_of<at::Layout>(object, stable::numbers::layouts);
}
inline at::MemoryFormat memory_format_of(PyObject* object) {
  return detail::value_of<at::MemoryFormat>(object, stable::numbers::memory_formats);
}
inline at::Generator generator_of(PyObject* object) noexcept {
  return at::Generator(object);
}

// The opposite direction: new references.
inline PyObject* wrap_dtype(at::ScalarType value) {
  return stable::to_python(value);
}
inline PyObject* wrap_layout(at::Layout value) {
  return stable::to_python(value);
}
inline PyObject* wrap_memory_format(at::MemoryFormat value) {
  return stable::to_python(value);
}
inline PyObject* wrap_device(const at::Device& value) {
  return stable::to_python(value);
}

}  // namespace interop
