// What Python gives as arguments, checked. All of these raise: a Python error is set.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <ATen/dlpack.h>

#include <cstdint>

#include "interop/bridges.h"
#include "interop/exceptions.h"

namespace interop::bridges {

// Runs `convert`, and turns what it throws into a Python error and null.
template <class F>
PyObject* guarded(F convert) noexcept {
  try {
    return convert();
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}

// "raise", "share" or "copy".
OnReadonly on_readonly_of(PyObject* text);

// `accepted` is what the message asks for.
int64_t integer_of(PyObject* object, const char* argument, const char* accepted);

struct Pair {
  int64_t first;
  int64_t second;
};
Pair pair_of(PyObject* object, const char* argument, const char* accepted);

// As __dlpack_device__() has it.
DLDevice dl_device_of(PyObject* object, const char* argument);

// Borrowed from the object.
const at::Tensor& tensor_of(PyObject* object);

}  // namespace interop::bridges
