// Wraps and unwraps the Python objects for dtypes, devices, layouts, memory formats, sizes, generators and streams.
//
// Unlike python_variable.h, torch's headers of these objects are light. We include them, so the structs are those of
// the torch that we compile for. Only Size.h is heavy. The one name that we need from it is declared here, and
// csrc/layout.cpp checks the declaration.
#pragma once

#include <Python.h>

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>
#include <c10/core/Stream.h>
#include <c10/util/ArrayRef.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/Stream.h>
#include <torch/csrc/utils/tensor_memoryformats.h>

#include <cstddef>

#include "interop/device.h"
#include "interop/exceptions.h"
#include "interop/owned_ref.h"

// torch.Size, the only name of its header that libtorch_python exports.
extern PyTypeObject THPSizeType;

namespace interop {

// torch's struct, with our Device in place of c10's, so that Cython code can compare the field with an at.Device.
// Between the two classes, == is ambiguous.
struct THPDevice {
  PyObject_HEAD
  Device device;
};
static_assert(sizeof(THPDevice) == sizeof(::THPDevice) && alignof(THPDevice) == alignof(::THPDevice));
static_assert(sizeof(Device) == sizeof(c10::Device));
static_assert(offsetof(THPDevice, device) == offsetof(::THPDevice, device));

// Whether obj really is one of torch's objects in C. As for tensors, isinstance() is no proof, and it can raise;
// torch's own checks for generators and streams use it. These functions need the GIL, as do all below.

inline bool is_dtype(PyObject* obj) noexcept {
  return THPDtype_Check(obj);  // the type itself: it cannot be subclassed
}
inline bool is_device(PyObject* obj) noexcept {
  return THPDevice_Check(obj);
}
inline bool is_layout(PyObject* obj) noexcept {
  return THPLayout_Check(obj);
}
inline bool is_memory_format(PyObject* obj) noexcept {
  return THPMemoryFormat_Check(obj);
}
inline bool is_size(PyObject* obj) noexcept {
  return Py_TYPE(obj) == &THPSizeType;  // final as well
}
inline bool is_generator(PyObject* obj) noexcept {
  return THPGeneratorClass != nullptr && PyObject_TypeCheck(obj, reinterpret_cast<PyTypeObject*>(THPGeneratorClass));
}
// torch.cuda.Stream and those of other devices are subclasses.
inline bool is_stream(PyObject* obj) noexcept {
  return THPStreamClass != nullptr && PyObject_TypeCheck(obj, THPStreamClass);
}

// The value in an object that has passed the check above.

inline at::ScalarType dtype_of(PyObject* obj) noexcept {
  return reinterpret_cast<THPDtype*>(obj)->scalar_type;
}
inline at::Device device_of(PyObject* obj) noexcept {
  return reinterpret_cast<::THPDevice*>(obj)->device;
}
inline at::Layout layout_of(PyObject* obj) noexcept {
  return reinterpret_cast<THPLayout*>(obj)->layout;
}
inline at::MemoryFormat memory_format_of(PyObject* obj) noexcept {
  return reinterpret_cast<THPMemoryFormat*>(obj)->memory_format;
}
// Owned: the generator outlives its Python object.
inline at::Generator generator_of(PyObject* obj) noexcept {
  return reinterpret_cast<THPGenerator*>(obj)->cdata;
}
inline c10::Stream stream_of(PyObject* obj) noexcept {
  const auto* stream = reinterpret_cast<THPStream*>(obj);
  return c10::Stream::unpack3(
      stream->stream_id, static_cast<c10::DeviceIndex>(stream->device_index),
      static_cast<c10::DeviceType>(stream->device_type));
}

namespace detail {

// torch keeps its objects in arrays, and indexes them with the enum unchecked. An invalid number can come from
// Python, because Cython converts an int to an enum class unchecked as well.
template <class Enum>
inline void check_enum(Enum value, const char* name) {
  const auto number = static_cast<int>(value);
  if (number < 0 || number >= static_cast<int>(Enum::NumOptions)) {
    raise_error(PyExc_ValueError, "%d is not an at.%s", number, name);
  }
}

}  // namespace detail

// Wraps a value. The result is always a new reference. Each dtype, layout and memory format has one object, which is
// returned; an invalid number raises ValueError.

inline PyObject* wrap_dtype(at::ScalarType value) {
  detail::check_enum(value, "ScalarType");
  if (value == at::ScalarType::Undefined) {
    raise_error(PyExc_ValueError, "at.ScalarType.Undefined is not a dtype");
  }
  return Py_NewRef(reinterpret_cast<PyObject*>(torch::getTHPDtype(value)));
}
inline PyObject* wrap_layout(at::Layout value) {
  detail::check_enum(value, "Layout");
  return Py_NewRef(reinterpret_cast<PyObject*>(torch::getTHPLayout(value)));
}
inline PyObject* wrap_memory_format(at::MemoryFormat value) {
  detail::check_enum(value, "MemoryFormat");
  return Py_NewRef(torch::utils::getTHPMemoryFormat(value));
}

// A new object each time, as in torch: compare devices with ==.
inline PyObject* wrap_device(const at::Device& device) {
  return checked(THPDevice_New(device));
}

// A torch.Size with a copy of the numbers.
inline PyObject* wrap_size(at::IntArrayRef sizes) {
  // Allocates a tuple of the subclass's type, as torch does. Calling that type would copy a tuple that we made first.
  OwnedRef size(checked(THPSizeType.tp_alloc(&THPSizeType, static_cast<Py_ssize_t>(sizes.size()))));
  for (size_t i = 0; i < sizes.size(); ++i) {
    PyTuple_SET_ITEM(size.get(), static_cast<Py_ssize_t>(i), checked(PyLong_FromLongLong(sizes[i])));
  }
  return size.release();
}

// A Python object for this generator: the last one made from C++ if it still exists, otherwise a new one; None if
// undefined. Identity is not kept as it is for tensors. torch does not tell the C++ side of torch.default_generator
// or of objects that torch.Generator() makes, so those objects are not found again. When one of several objects of a
// generator dies, the record of the others is lost with it.
inline PyObject* wrap_generator(const at::Generator& generator) {
  return checked(THPGenerator_Wrap(generator));
}

// A new torch.Stream each time, even if the stream came from a torch.cuda.Stream: compare streams with ==.
inline PyObject* wrap_stream(const c10::Stream& stream) {
  return checked(THPStream_Wrap(stream));
}
inline PyObject* wrap_stream(c10::StreamId stream_id, const at::Device& device) {
  return wrap_stream(c10::Stream(c10::Stream::UNSAFE, device, stream_id));
}

}  // namespace interop

// Cython names the object struct of an extension type without a namespace.
using interop_THPDevice = interop::THPDevice;
