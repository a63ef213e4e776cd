// Operators that torch's C interface cannot call: those that take or return a number of any type (Scalar) or a
// generator, and those whose results have types that read differently backwards. They are called through Python,
// torch.ops.aten.NAME.OVERLOAD, with the GIL.
#pragma once

#include <Python.h>

#include <array>
#include <atomic>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "ATen/core/Generator.h"
#include "c10/core/Scalar.h"
#include "interop/exceptions.h"
#include "interop/stable/ivalue.h"

namespace interop::stable {

// Conversions of a value to a new Python object, and back. All need the GIL.
inline PyObject* to_python(const Tensor& value) {
  return wrap(value);
}
inline PyObject* to_python(bool value) {
  return PyBool_FromLong(value);
}
inline PyObject* to_python(int64_t value) {
  return PyLong_FromLongLong(value);
}
inline PyObject* to_python(double value) {
  return PyFloat_FromDouble(value);
}
inline PyObject* to_python(std::string_view value) {
  return PyUnicode_FromStringAndSize(value.data(), static_cast<Py_ssize_t>(value.size()));
}
inline PyObject* to_python(const at::Scalar& value) {
  if (value.isBoolean()) {
    return to_python(value.toBool());
  }
  if (value.isComplex()) {
    return PyComplex_FromDoubles(value.real(), value.imag());
  }
  if (value.isFloatingPoint()) {
    return to_python(value.toDouble());
  }
  return value.type() == at::kUInt64 ? PyLong_FromUnsignedLongLong(value.toUInt64()) : to_python(value.toLong());
}
inline PyObject* torch_attribute(const char* name) {
  return checked(PyObject_GetAttrString(torch_module, name));
}
inline PyObject* to_python(at::ScalarType value) {
  const ElementType* found = element_type(value);
  return torch_attribute(found ? found->python : c10::toString(value));
}
inline constexpr const char* layout_names[] = {
#define INTEROP_NAME(name, python) #python,
    INTEROP_LAYOUTS(INTEROP_NAME)
#undef INTEROP_NAME
};
inline constexpr const char* memory_format_names[] = {
#define INTEROP_NAME(name, python) #python,
    INTEROP_MEMORY_FORMATS(INTEROP_NAME)
#undef INTEROP_NAME
};
// An enum may have come from any number.
template <class Enum, size_t N>
PyObject* attribute_of(const char* const (&names)[N], Enum value, const char* kind) {
  const auto i = static_cast<size_t>(value);
  if (i >= N) {
    raise(Kind::value, kind, " number ", static_cast<int64_t>(value), " is not one that this module knows");
  }
  return torch_attribute(names[i]);
}
inline PyObject* to_python(at::Layout value) {
  return attribute_of(layout_names, value, "layout");
}
inline PyObject* to_python(at::MemoryFormat value) {
  return attribute_of(memory_format_names, value, "memory format");
}
inline PyObject* to_python(const c10::Device& value) {
  return checked(PyObject_CallMethod(torch_module, "device", "s", value.str().c_str()));
}
inline PyObject* to_python(const at::Generator& value) {
  return Py_NewRef(value.object() ? value.object() : Py_None);
}
template <class Values>
PyObject* to_python_list(const Values& values);
template <class T>
PyObject* to_python(at::ArrayRef<T> values) {
  return to_python_list(values);
}
template <size_t N>
PyObject* to_python(const std::array<bool, N>& values) {
  return to_python_list(values);
}
template <class T>
PyObject* to_python(const std::optional<T>& value) {
  return value ? to_python(*value) : Py_NewRef(Py_None);
}
template <class T>
PyObject* to_python(const at::OptionalArrayRef<T>& value) {
  return value ? to_python(*value) : Py_NewRef(Py_None);
}
template <class Values>
PyObject* to_python_list(const Values& values) {
  OwnedRef list(checked(PyList_New(0)));
  for (const auto& value : values) {
    const OwnedRef item(checked(to_python(value)));
    checked(PyList_Append(list.get(), item.get()));
  }
  return list.release();
}

inline at::ScalarType dtype_of(PyObject* object) {
  const std::string name = detail::text_of(object);  // torch.float32
  for (int i = 0; name.starts_with("torch.") && i < numbers::element_types; ++i) {
    if (name.compare(std::strlen("torch."), name.npos, element_types[i].python) == 0) {
      return static_cast<at::ScalarType>(i);
    }
  }
  raise(Kind::type, name, " is no dtype that this module knows");
}

template <class R>
struct FromPython;
template <>
struct FromPython<void> {
  static void take(PyObject*) noexcept {}
};
template <>
struct FromPython<Tensor> {
  static Tensor take(PyObject* object) {
    return object == Py_None ? Tensor() : unpack(object);
  }
};
template <>
struct FromPython<bool> {
  static bool take(PyObject* object) {
    return checked(PyObject_IsTrue(object)) == 1;
  }
};
template <>
struct FromPython<int64_t> {
  static int64_t take(PyObject* object) {
    return checked(PyLong_AsLongLong(object));
  }
};
template <>
struct FromPython<double> {
  static double take(PyObject* object) {
    return checked(PyFloat_AsDouble(object));
  }
};
template <>
struct FromPython<at::Scalar> {
  static at::Scalar take(PyObject* object) {
    if (PyBool_Check(object)) {
      return object == Py_True;
    }
    if (PyFloat_Check(object)) {
      return PyFloat_AsDouble(object);
    }
    if (PyComplex_Check(object)) {
      return at::Scalar::of_complex(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object));
    }
    int overflow = 0;
    const long long value = checked(PyLong_AsLongLongAndOverflow(object, &overflow));
    return overflow ? at::Scalar(checked(PyLong_AsUnsignedLongLong(object))) : at::Scalar(int64_t{value});
  }
};
template <>
struct FromPython<at::ScalarType> {
  // Accepts a torch.dtype, or its number.
  static at::ScalarType take(PyObject* object) {
    return PyLong_Check(object) ? static_cast<at::ScalarType>(checked(PyLong_AsLong(object))) : dtype_of(object);
  }
};
template <class T>
struct FromPython<std::vector<T>> {
  static std::vector<T> take(PyObject* object) {
    std::vector<T> values;
    const Py_ssize_t size = checked(PySequence_Size(object));
    for (Py_ssize_t i = 0; i < size; ++i) {
      const OwnedRef item(checked(PySequence_GetItem(object, i)));
      values.push_back(FromPython<T>::take(item.get()));
    }
    return values;
  }
};
template <class... R>
struct FromPython<std::tuple<R...>> {
  static std::tuple<R...> take(PyObject* object) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      // Braces evaluate the elements in order.
      return std::tuple<R...>{FromPython<R>::take(OwnedRef(checked(PySequence_GetItem(object, i))).get())...};
    }(std::index_sequence_for<R...>());
  }
};

template <class T>
PyObject* to_python(const c10::List<T>& values) {
  return to_python_list(values);
}

// An operator as a Python function, which each call site looks up once.
class PythonOperator {
 public:
  constexpr PythonOperator(const char* name, const char* overload, const char* schema) noexcept
      : operator_(name, overload, schema) {}

  // Calls it with all arguments of its schema, in order. The last ones are keyword arguments with these `names`.
  template <class R, class... A>
  R call(std::initializer_list<const char*> names, const A&... arguments) {
    return in_python([&] {
      OwnedRef objects[] = {OwnedRef(checked(to_python(arguments)))..., OwnedRef()};
      return FromPython<R>::take(call_with(names, objects, sizeof...(A)).get());
    });
  }

 private:
  __attribute__((cold)) OwnedRef call_with(std::initializer_list<const char*> names, OwnedRef* objects, size_t count);

  PyObject* function();

  Operator operator_;
  std::atomic<PyObject*> function_ = nullptr;  // owned until the process ends; threads may look it up concurrently
};

// A number of any element type, like Python's tensor.item(). Acquires the GIL.
inline at::Scalar number_in(const Tensor& tensor) {
  return in_python([&] {
    const OwnedRef object(wrap(tensor));
    return FromPython<at::Scalar>::take(without_torch_function(object.get(), "item", true).get());
  });
}

template <class Self>
at::Scalar Metadata<Self>::item() const {
  return number_in(tensor());
}

template <class Self>
template <class T>
T Metadata<Self>::item() const {
  return number_in(tensor()).template to<T>();
}

}  // namespace interop::stable
