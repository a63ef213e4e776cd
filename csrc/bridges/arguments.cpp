// See arguments.h.
#include "arguments.h"

#include <c10/util/Exception.h>

#include <limits>
#include <string_view>

#include "interop/tensor.h"
#include "reference.h"

namespace interop::bridges {

OnReadonly on_readonly_of(PyObject* text) {
  static PyObject* const raise = PyUnicode_InternFromString("raise");
  if (text == raise) [[likely]] {
    return OnReadonly::raise;
  }
  const char* characters = PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
  const std::string_view word = characters ? characters : "";
  if (word == "raise" || word == "share" || word == "copy") {
    return word == "raise" ? OnReadonly::raise : word == "share" ? OnReadonly::share : OnReadonly::copy;
  }
  PyErr_Format(PyExc_ValueError, "argument 'on_readonly' must be 'raise', 'share' or 'copy', got %.200R", text);
  throw PythonError();
}

int64_t integer_of(PyObject* object, const char* argument, const char* accepted) {
  if (!PyIndex_Check(object)) {
    PyErr_Format(PyExc_TypeError, "argument '%s' must be %s, got %.200s", argument, accepted, Py_TYPE(object)->tp_name);
    throw PythonError();
  }
  const Reference whole(PyNumber_Index(object));
  int overflows = 0;
  const long long value = whole ? PyLong_AsLongLongAndOverflow(whole.get(), &overflows) : -1;
  if (overflows) {
    PyErr_Format(
        PyExc_OverflowError,
        "argument '%s' must be %s of at most 64 bits, got %.200R",
        argument,
        accepted,
        whole.get());
  }
  if (value == -1 && PyErr_Occurred()) {
    throw PythonError();
  }
  return value;
}

Pair pair_of(PyObject* object, const char* argument, const char* accepted) {
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != 2) {
    PyErr_Format(PyExc_TypeError, "argument '%s' must be %s, got %.200R", argument, accepted, object);
    throw PythonError();
  }
  const int64_t first = integer_of(PyTuple_GET_ITEM(object, 0), argument, accepted);
  return {first, integer_of(PyTuple_GET_ITEM(object, 1), argument, accepted)};
}

DLDevice dl_device_of(PyObject* object, const char* argument) {
  constexpr const char* accepted = "a tuple of DLPack's type of device and its index";
  const Pair given = pair_of(object, argument, accepted);
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  TORCH_CHECK_VALUE(
      0 <= given.first && given.first <= most && 0 <= given.second && given.second <= most,
      "argument '",
      argument,
      "' must be ",
      accepted,
      ", got (",
      given.first,
      ", ",
      given.second,
      ")");
  return {static_cast<DLDeviceType>(given.first), static_cast<int32_t>(given.second)};
}

const at::Tensor& tensor_of(PyObject* object) {
  if (!is_tensor(object)) [[unlikely]] {
    PyErr_Format(
        PyExc_TypeError,
        "argument 'tensor' must be a torch.Tensor, got %.200s; make one with torch.as_tensor(tensor)",
        Py_TYPE(object)->tp_name);
    throw PythonError();
  }
  return reinterpret_cast<THPVariable*>(object)->cdata;
}

}  // namespace interop::bridges
