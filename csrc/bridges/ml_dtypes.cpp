// See ml_dtypes.h.
#include "ml_dtypes.h"

#include <c10/util/Exception.h>

#include <array>

#include "interop/check.h"

namespace interop::bridges {

namespace {

std::array<PyObject*, dtypes.size()> types{};  // by the rows of the table; owned, for good

// The scalar type of a row, borrowed, or null: not looked for again once it was found.
PyObject* find_type(size_t row, PyObject* module) {
  if (!types[row] && dtypes[row].ml_name) {
    types[row] = PyObject_GetAttrString(module, dtypes[row].ml_name);
    PyErr_Clear();  // an old release, which lacks it
  }
  return types[row];
}

}  // namespace

const Dtype* find_ml_dtype(PyObject* type) {
  // Whoever has an array of such a dtype has imported the package.
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "ml_dtypes");
  if (!module || !type) {
    return nullptr;
  }
  for (size_t row = 0; row < dtypes.size(); ++row) {
    if (dtypes[row].ml_name && find_type(row, module) == type) {
      return &dtypes[row];
    }
  }
  return nullptr;
}

PyObject* ml_dtype_type(const Dtype& dtype, const at::Tensor& tensor) {
  const size_t row = &dtype - dtypes.data();
  if (!types[row]) {
    if (PyObject* module = PyImport_ImportModule("ml_dtypes")) {
      find_type(row, module);
      Py_DECREF(module);
    }
    PyErr_Clear();
  }
  TORCH_CHECK_TYPE(
      types[row],
      "argument 'tensor' has dtype ",
      interop::detail::dtype_name(tensor.scalar_type()),
      ", which NumPy has through ml_dtypes.",
      dtype.ml_name,
      " only; run: pip install ml_dtypes, or take its bits with .view(torch.",
      dtype.size == 1 ? "uint8" : "uint16",
      "), or convert it with .to(torch.float32)");
  return types[row];
}

}  // namespace interop::bridges
