// Names that the converters look up: interned when the module is imported, and kept for good.
//
// They are not function-local statics. The initialisation of such a variable holds a lock. A thread that waits for
// that lock keeps the GIL or, in a free-threaded Python, blocks a stop-the-world pause.
#pragma once

#include <Python.h>

#include <utility>

namespace interop::bridges::names {

inline PyObject* raise = nullptr;
inline PyObject* numpy_ma = nullptr;
inline PyObject* ml_dtypes = nullptr;
inline PyObject* torch_utils_device = nullptr;
inline PyObject* dlpack = nullptr;
inline PyObject* dlpack_device = nullptr;
inline PyObject* exchange_api = nullptr;

// Call this once, when the module is imported. Returns 0, or -1 with an error set.
inline int ready() noexcept {
  const std::pair<PyObject**, const char*> all[] = {
      {&raise, "raise"},
      {&numpy_ma, "numpy.ma"},
      {&ml_dtypes, "ml_dtypes"},
      {&torch_utils_device, "torch.utils._device"},
      {&dlpack, "__dlpack__"},
      {&dlpack_device, "__dlpack_device__"},
      {&exchange_api, "__dlpack_c_exchange_api__"},
  };
  for (const auto& [name, text] : all) {
    *name = PyUnicode_InternFromString(text);
    if (*name == nullptr) {
      return -1;
    }
  }
  return 0;
}

}  // namespace interop::bridges::names
