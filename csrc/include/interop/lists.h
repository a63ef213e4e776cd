// Lists that a Cython caller writes without declaring a vector: dims(2, 3), tensors(a, b).
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <array>
#include <cstdint>
#include <vector>

#include "interop/unwrap_reference.h"

namespace interop {

// A few sizes, held by value: they need no allocation and cannot dangle.
class Dims {
 public:
  Dims() noexcept = default;
  template <class... T>
  explicit Dims(T... values) noexcept : values_{static_cast<int64_t>(values)...}, size_(sizeof...(values)) {}

  size_t size() const noexcept {
    return size_;
  }
  const int64_t* data() const noexcept {
    return values_.data();
  }
  const int64_t& operator[](size_t index) const noexcept {
    return values_[index];
  }
  operator at::IntArrayRef() const noexcept {
    return at::IntArrayRef(values_.data(), size_);
  }

 private:
  std::array<int64_t, 8> values_{};
  size_t size_ = 0;
};

template <class... T>
Dims dims(T... values) noexcept {
  return Dims(values...);
}

template <class... T>
std::vector<at::Tensor> tensors(const T&... tensor) {
  return {unwrap_reference(tensor)...};
}

}  // namespace interop
