// torch's stable C interface, looked up in the running process.
//
// A stable module is not linked to any library of torch. If it were, it could not be loaded before torch is imported,
// and with a torch below its floor the loader would report a symbol but no version. Instead, the module imports torch
// when it is imported, compares versions, and takes the addresses of the functions from there.
//
// Functions that this and the other headers of stable modules only declare are in stable/cold.cpp.
#pragma once

#include <Python.h>

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "interop/owned_ref.h"
#include "interop/stable/c_shim.h"
#include "interop/stable/errors.h"

// The macros of CPython 3.12.0 to 3.13 take no reference, because these objects are immortal there. With a floor below
// 3.12, the module also runs on 3.11, where each use would lose a reference until the interpreter aborts. Cython's code
// uses them. Corrected in later releases of CPython: github.com/python/cpython/issues/134989 and 140487.
#if defined(Py_LIMITED_API) && Py_LIMITED_API + 0 < 0x030c0000
#undef Py_RETURN_NONE
#undef Py_RETURN_TRUE
#undef Py_RETURN_FALSE
#undef Py_RETURN_NOTIMPLEMENTED
#define Py_RETURN_NONE return Py_NewRef(Py_None)
#define Py_RETURN_TRUE return Py_NewRef(Py_True)
#define Py_RETURN_FALSE return Py_NewRef(Py_False)
#define Py_RETURN_NOTIMPLEMENTED return Py_NewRef(Py_NotImplemented)
#endif

#ifndef INTEROP_STABLE
#error "torch.stable is for modules that are built with stable='X.Y': Extension(..., stable='2.11')"
#endif

// The functions that every torch from the floor on has: X(name) for each function of the C interface that the headers
// call.
#define INTEROP_SHIM(X)                  \
  X(aoti_torch_aten_subtract_Tensor)     \
  X(aoti_torch_create_device_guard)      \
  X(aoti_torch_delete_device_guard)      \
  X(aoti_torch_delete_library_object)    \
  X(aoti_torch_delete_stream)            \
  X(aoti_torch_delete_tensor_object)     \
  X(aoti_torch_get_current_stream)       \
  X(aoti_torch_get_device_index)         \
  X(aoti_torch_get_device_type)          \
  X(aoti_torch_get_dim)                  \
  X(aoti_torch_get_dtype)                \
  X(aoti_torch_get_layout)               \
  X(aoti_torch_get_numel)                \
  X(aoti_torch_get_size)                 \
  X(aoti_torch_get_sizes)                \
  X(aoti_torch_get_storage_offset)       \
  X(aoti_torch_get_stride)               \
  X(aoti_torch_get_strides)              \
  X(aoti_torch_grad_mode_is_enabled)     \
  X(aoti_torch_grad_mode_set_enabled)    \
  X(aoti_torch_is_contiguous)            \
  X(aoti_torch_is_defined)               \
  X(aoti_torch_library_def)              \
  X(aoti_torch_library_init_fragment)    \
  X(aoti_torch_library_init_impl)        \
  X(aoti_torch_new_tensor_handle)        \
  X(aoti_torch_new_uninitialized_tensor) \
  X(aoti_torch_scalar_to_tensor_bool)    \
  X(aoti_torch_scalar_to_tensor_float64) \
  X(aoti_torch_scalar_to_tensor_int64)   \
  X(torch_call_dispatcher)               \
  X(torch_delete_list)                   \
  X(torch_delete_string)                 \
  X(torch_from_blob)                     \
  X(torch_get_const_data_ptr)            \
  X(torch_get_mutable_data_ptr)          \
  X(torch_get_num_threads)               \
  X(torch_get_thread_idx)                \
  X(torch_library_impl)                  \
  X(torch_list_get_item)                 \
  X(torch_list_push_back)                \
  X(torch_list_size)                     \
  X(torch_new_list_reserve_size)         \
  X(torch_new_string_handle)             \
  X(torch_parallel_for)                  \
  X(torch_parse_device_string)           \
  X(torch_set_requires_grad)             \
  X(torch_string_c_str)                  \
  X(torch_string_length)

// Functions that newer releases have, and that older ones can do without: X(name, type). The types are given because
// the floor's headers do not declare these functions.
#define INTEROP_SHIM_NEWER(X)                                                            \
  X(torch_exception_get_what_without_backtrace, const char* (*)())                       \
  X(torch_stream_native_handle, AOTITorchError (*)(StreamHandle stream, void** ret))     \
  X(torch_tensor_from_pyobject, AOTITorchError (*)(void* object, AtenTensorHandle* ret)) \
  X(torch_tensor_to_pyobject, AOTITorchError (*)(AtenTensorHandle self, void* type, void** ret))

// Weak, so that the loader sets missing functions to null. The references stay in the binary, for tools that derive
// the required torch from them.
#define INTEROP_WEAK(name) extern "C" __attribute__((weak)) decltype(name) name;
INTEROP_SHIM(INTEROP_WEAK)
#undef INTEROP_WEAK

namespace interop::stable {

struct Shim {
#define INTEROP_FIELD(name) decltype(&::name) name = &::name;
  INTEROP_SHIM(INTEROP_FIELD)
#undef INTEROP_FIELD
#define INTEROP_FIELD(name, type) std::type_identity_t<type> name = nullptr;
  INTEROP_SHIM_NEWER(INTEROP_FIELD)
#undef INTEROP_FIELD
};

inline Shim shim;

// Whether the word behind a Python tensor's object header is its at::Tensor, so that .cdata needs no copy. Determined
// at import. INTEROP_BORROW=0 in the environment disables it, to test the other path.
inline bool borrows = false;

// The two functions of torch._C._aoti, for releases without torch_tensor_from_pyobject and torch_tensor_to_pyobject.
inline PyObject* alloc_handle = nullptr;
inline PyObject* steal_handle = nullptr;

inline PyObject* tensor_type = nullptr;  // torch.Tensor
inline PyObject* torch_module = nullptr;

inline constexpr uint64_t target_version = TORCH_TARGET_VERSION;

#ifndef INTEROP_COLD
// Stays in the binary, for tools that read a module's requirements.
extern const char requirement[];
#ifdef INTEROP_LIMITED_API
#define INTEROP_PYTHON ", " INTEROP_LIMITED_API
#else
#define INTEROP_PYTHON ""
#endif
__attribute__((used)) inline const char requirement[] =
    "torch-interop stable abi: torch>=" INTEROP_STABLE INTEROP_PYTHON;
#endif

// The failure of a function of torch's C interface or of an operator, in torch's words.
class ShimError : public std::runtime_error {
 public:
  ShimError(const char* function, const char* text) : std::runtime_error(text), function_(function) {}
  const char* function() const noexcept {
    return function_;
  }

 private:
  const char* function_;  // a literal
};

// Cold, so that a call of the interface costs a test and a branch. `function` is a literal.
[[noreturn]] __attribute__((cold)) void fail(const char* function);

#define INTEROP_CALL(name, ...)                                        \
  do {                                                                 \
    if (::interop::stable::shim.name(__VA_ARGS__) != 0) [[unlikely]] { \
      ::interop::stable::fail(#name);                                  \
    }                                                                  \
  } while (false)

namespace detail {

// str(object) in UTF-8, or "?".
__attribute__((cold)) inline std::string text_of(PyObject* object) {
  const OwnedRef text(object ? PyObject_Str(object) : nullptr);
  const char* utf8 = text ? PyUnicode_AsUTF8AndSize(text.get(), nullptr) : nullptr;
  PyErr_Clear();
  return utf8 ? utf8 : "?";
}

}  // namespace detail

// The last call in Cython's PyInit_ function. Imports torch and fills `shim`, and raises ImportError unless torch is
// `floor`, such as "2.11", or newer.
PyObject* init_module(PyModuleDef* definition, const char* floor);

}  // namespace interop::stable

// Makes torch available before the module's own code runs.
#define PyModuleDef_Init(definition) ::interop::stable::init_module(definition, INTEROP_STABLE)
