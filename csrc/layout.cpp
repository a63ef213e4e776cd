// Compiling this file is a test: our light mirrors must agree with the headers of the torch that we are built for.
#include <ATen/DLConvertor.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Size.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/headeronly/version.h>

#include <cstddef>
#include <type_traits>

#include "interop/exceptions.h"
#include "interop/guards.h"
#include "interop/python_types.h"
#include "interop/tensor.h"
#include "interop/warnings.h"

// offsetof of a class that is not standard-layout is conditionally supported; g++ and clang do support it here.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

static_assert(sizeof(interop::THPVariable) == sizeof(::THPVariable));
static_assert(alignof(interop::THPVariable) == alignof(::THPVariable));
static_assert(offsetof(interop::THPVariable, cdata) == offsetof(::THPVariable, cdata));
static_assert(offsetof(interop::THPVariable, backward_hooks) == offsetof(::THPVariable, backward_hooks));
static_assert(
    offsetof(interop::THPVariable, post_accumulate_grad_hooks) == offsetof(::THPVariable, post_accumulate_grad_hooks));
static_assert(std::is_same_v<decltype(interop::THPVariable::cdata), at::Tensor>);
static_assert(std::is_same_v<decltype(interop::THPVariable::cdata), decltype(::THPVariable::cdata)>);

// bridges/dlpack.cpp declares these again. A different type would be found only when the module is imported.
static_assert(std::is_same_v<decltype(&at::toDLPack), DLManagedTensor* (*)(const at::Tensor&)>);
static_assert(std::is_same_v<decltype(&at::toDLPackVersioned), DLManagedTensorVersioned* (*)(const at::Tensor&)>);

// python_types.h uses torch's own structs. pxd/torch/_types.pxd names the types of their fields, and a different type
// would be converted silently. (THPSizeType, which we declare, would not compile beside Size.h if it differed.)
static_assert(std::is_same_v<decltype(THPDtype::scalar_type), c10::ScalarType>);
static_assert(std::is_same_v<decltype(THPDevice::device), c10::Device>);
static_assert(std::is_same_v<decltype(THPLayout::layout), c10::Layout>);
static_assert(std::is_same_v<decltype(THPMemoryFormat::memory_format), c10::MemoryFormat>);
static_assert(std::is_same_v<decltype(THPGenerator::cdata), at::Generator>);
static_assert(std::is_same_v<decltype(THPStream::stream_id), int64_t>);
static_assert(std::is_same_v<decltype(THPStream::device_type), int64_t>);
static_assert(std::is_same_v<decltype(THPStream::device_index), int64_t>);

// Functions that we declare ourselves: a different return type would not compile, a different parameter would not link.
static_assert(std::is_same_v<decltype(torch::translate_exception_to_python), void(const std::exception_ptr&)>);
static_assert(std::is_same_v<decltype(THPVariableClass), PyObject*>);

// The headers must be of the release that the generated declarations are named after.
#define INTEROP_STRING_(x) #x
#define INTEROP_STRING(x) INTEROP_STRING_(x)
static_assert(TORCH_VERSION_MAJOR == INTEROP_TORCH_MAJOR, "headers of torch " TORCH_VERSION);
static_assert(TORCH_VERSION_MINOR == INTEROP_TORCH_MINOR, "headers of torch " TORCH_VERSION);

namespace interop {

// The toolchain of this build, for `python -m interop doctor` and the records of experiments.
const char* torch_version() {
  return TORCH_VERSION;
}
const char* compiler() {
#ifdef __clang__
  return "clang " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}
long cxx_standard() {
  return __cplusplus;
}

}  // namespace interop
