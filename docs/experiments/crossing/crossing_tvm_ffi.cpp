// The functions for tvm-ffi, which finds them by the names of their symbols. A TensorView borrows: the caller keeps the
// tensor alive.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

namespace {

using T = tvm::ffi::TensorView;

int64_t one(T a) {
  return a.numel();
}

int64_t three(T a, T b, T c) {
  return a.numel() + b.numel() + c.numel();
}

int64_t eight(T a, T b, T c, T d, T e, T f, T g, T h) {
  return three(a, b, c) + three(d, e, f) + g.numel() + h.numel();
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(one, one);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(three, three);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(eight, eight);
