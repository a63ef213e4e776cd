// A tensor over the caller's memory.
#pragma once

#include <cstdint>
#include <vector>

#include "interop/stable/tensor.h"

namespace interop::stable {

using Deleter = void (*)(void* data, void* context);

// `sizes` counts elements of `dtype`. `deleter` is called once, when no tensor uses the memory any more, on any
// thread and without the GIL. It is null if the memory outlives all tensors. `data` may be null if there are no
// elements; then the deleter is called at once. The tensor is contiguous unless strides are passed.
inline Tensor from_blob(
    void* data,
    at::IntArrayRef sizes,
    at::IntArrayRef strides,
    at::ScalarType dtype,
    const interop::Device& device,
    Deleter deleter,
    void* context) {
  if (sizes.size() != strides.size()) {
    raise(
        Kind::value, "from_blob(): argument 'strides' must have one for each of the ", sizes.size(), " sizes, got ",
        strides.size());
  }
  bool empty = false;
  for (const int64_t size : sizes) {
    if (size < 0) {
      raise(Kind::value, "from_blob(): argument 'sizes' must not be negative, got ", size);
    }
    empty |= size == 0;
  }
  if (!data && !empty) {
    raise(Kind::value, "from_blob(): argument 'data' must not be null for a tensor with elements");
  }
  AtenTensorHandle handle = nullptr;
  INTEROP_CALL(
      torch_from_blob, data, static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(), 0,
      static_cast<int32_t>(dtype), static_cast<int32_t>(device.type()), device.index(), &handle,
      static_cast<int32_t>(at::kStrided), nullptr, 0, data ? deleter : nullptr, context);
  Tensor result(handle);
  if (!data && deleter) {  // torch makes an empty tensor of its own, and does not keep the deleter
    deleter(data, context);
  }
  return result;
}

inline Tensor from_blob(
    void* data, at::IntArrayRef sizes, at::ScalarType dtype, Deleter deleter = nullptr, void* context = nullptr) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    if (__builtin_mul_overflow(stride, sizes[d] > 1 ? sizes[d] : 1, &stride)) {
      raise(Kind::value, "from_blob(): argument 'sizes' has more elements than an int64 can count");
    }
  }
  return from_blob(data, sizes, strides, dtype, interop::Device(), deleter, context);
}

}  // namespace interop::stable
