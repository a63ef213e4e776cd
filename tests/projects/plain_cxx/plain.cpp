// A module in plain C++ over our headers: no Cython, no pybind11.
#include <ATen/ScalarOps.h>
#include <ATen/Version.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/neg.h>

#include <new>

#include "interop/device.h"
#include "interop/elementwise.h"
#include "interop/exceptions.h"
#include "interop/guards.h"
#include "interop/instruction_sets.h"
#include "interop/state.h"
#include "interop/tensor.h"
#include "interop/tuple.h"
#include "interop/warnings.h"

namespace {

// Which states compiled autograd can copy: interop/state.h. Compiling this is the test.
namespace states {
struct List {
  std::vector<double> values;
};
struct Nested {
  std::vector<List> lists;
  std::optional<c10::SymInt> size;
};
struct Derived : List {  // a structured binding does not name the members of List
  c10::SymInt size;
};
struct OfTensors {
  std::vector<at::Tensor> tensors;
};
using interop::autograd::state::has_parts;
static_assert(has_parts<List>() && has_parts<Nested>() && has_parts<std::string>() && has_parts<c10::SymInt>());
static_assert(!has_parts<Derived>() && !has_parts<OfTensors>() && !has_parts<at::Tensor>());
static_assert(interop::autograd::state_type<Derived>.copy == nullptr);
struct WithDevice {
  std::vector<double> values;
  c10::Device device{c10::kCPU};
};
struct WithArray {
  std::vector<double> values;
  double weights[3];
};
struct WithConstant {
  std::vector<double> values;
  const int power = 3;
};
struct WithInitialiser {
  std::optional<std::string> text = "as made";
};
struct WithView {
  std::string text;
  std::string_view part;
};
static_assert(
    has_parts<WithArray>() && !has_parts<WithDevice>() && !has_parts<WithConstant>() && !has_parts<WithView>());
static_assert(!has_parts<std::array<c10::SymInt, 2>>() && !has_parts<std::vector<c10::Device>>());
static_assert(!has_parts<const char*>() && !has_parts<c10::IntArrayRef>());
}  // namespace states

// Our headers declare these functions of torch themselves, because torch's headers cost too much. If torch declares
// other parameters, the name is of two functions, and this does not compile; nor if it declares another result.
[[maybe_unused]] constexpr auto scalar_tensor_static = &at::detail::scalar_tensor_static;
[[maybe_unused]] constexpr auto get_cpu_capability = &at::get_cpu_capability;

// Calls a function that may throw, as every entry point into C++ must.
template <class Function>
PyObject* guarded(Function function) noexcept {
  try {
    return function();
  } catch (...) {
    interop::translate_exception();
    return nullptr;
  }
}

PyObject* roundtrip(PyObject*, PyObject* obj) {
  return guarded([&] { return interop::wrap(interop::unpack(obj)); });
}

PyObject* square(PyObject*, PyObject* obj) {
  return guarded([&] {
    const at::Tensor x = interop::unpack(obj);
    return interop::wrap(at::mm(x, x));
  });
}

PyObject* negate_into(PyObject*, PyObject* args) {
  return guarded([&] {
    interop::WarningScope warnings;
    at::Tensor out = interop::unpack(PyTuple_GET_ITEM(args, 1));
    at::neg_out(out, interop::unpack(PyTuple_GET_ITEM(args, 0)));
    warnings.emit();
    return interop::wrap(out);
  });
}

// Throws one of each kind that is not a c10::Error.
PyObject* throw_kind(PyObject*, PyObject* kind) {
  return guarded([&]() -> PyObject* {
    const long which = PyLong_AsLong(kind);
    if (which == 0) {
      throw std::bad_alloc();
    }
    if (which == 1) {
      throw 7;
    }
    if (which == 2) {
      throw std::out_of_range("from the standard library");
    }
    PyErr_SetString(PyExc_KeyError, "set before");
    throw std::out_of_range("must not hide it");
  });
}

// What torch itself makes of an exception of the standard library, which differs from release to release.
PyObject* throw_to_torch(PyObject*, PyObject*) {
  try {
    throw std::out_of_range("from the standard library");
  } catch (...) {
    torch::translate_exception_to_python(std::current_exception());
  }
  return nullptr;
}

// Whether the copy of a state has no text if the state has none.
PyObject* copy_a_reset_optional(PyObject*, PyObject*) {
  return guarded([] {
    constexpr auto& type = interop::autograd::state_type<states::WithInitialiser>;
    states::WithInitialiser state{std::nullopt}, copy;
    interop::autograd::StateParts parts;
    type.copy(&state, parts, false);
    type.copy(&copy, parts, true);
    return PyBool_FromLong(!copy.text.has_value());
  });
}

PyMethodDef methods[] = {
    {"copy_a_reset_optional", copy_a_reset_optional, METH_NOARGS, nullptr},
    {"roundtrip", roundtrip, METH_O, nullptr},
    {"square", square, METH_O, nullptr},
    {"throw_to_torch", throw_to_torch, METH_NOARGS, nullptr},
    {"negate_into", negate_into, METH_VARARGS, nullptr},
    {"throw_kind", throw_kind, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "plain", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_plain() {
  return PyModuleDef_Init(&definition);
}
