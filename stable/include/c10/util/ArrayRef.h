// A view of borrowed memory, like torch's class of this name.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "interop/stable/errors.h"

namespace c10 {

template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;

  constexpr ArrayRef() noexcept = default;
  constexpr ArrayRef(const T& value) noexcept : data_(&value), size_(1) {}
  constexpr ArrayRef(const T* data, size_t size) noexcept : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end) noexcept : data_(begin), size_(static_cast<size_t>(end - begin)) {}
  // From a vector, an array, or any other class with contiguous elements of this type.
  template <class Values>
    requires requires(const Values& values) {
      { values.data() } -> std::convertible_to<const T*>;
      values.size();
    }
  constexpr ArrayRef(const Values& values) noexcept : data_(values.data()), size_(values.size()) {}
  template <size_t N>
  constexpr ArrayRef(const T (&values)[N]) noexcept : data_(values), size_(N) {}
  constexpr ArrayRef(const std::initializer_list<T>& values) noexcept : data_(values.begin()), size_(values.size()) {}
  // An ArrayRef assigned from a temporary would outlive it.
  template <std::same_as<T> U>
  ArrayRef& operator=(U&& value) = delete;
  template <std::same_as<T> U>
  ArrayRef& operator=(std::initializer_list<U> values) = delete;

  constexpr const T* begin() const noexcept {
    return data_;
  }
  constexpr const T* end() const noexcept {
    return data_ + size_;
  }
  constexpr const T* data() const noexcept {
    return data_;
  }
  constexpr size_t size() const noexcept {
    return size_;
  }
  constexpr bool empty() const noexcept {
    return size_ == 0;
  }
  constexpr const T& operator[](size_t index) const noexcept {
    return data_[index];
  }
  const T& at(size_t index) const {
    check(index < size_);
    return data_[index];
  }
  const T& front() const {
    return at(0);
  }
  const T& back() const {
    return at(size_ - 1);
  }
  ArrayRef slice(size_t start, size_t size) const {
    check(start <= size_ && size <= size_ - start);
    return {data_ + start, size};
  }
  ArrayRef slice(size_t start) const {
    check(start <= size_);
    return {data_ + start, size_ - start};
  }
  constexpr bool equals(ArrayRef other) const {
    bool same = size_ == other.size_;
    for (size_t i = 0; same && i < size_; ++i) {
      same = data_[i] == other.data_[i];
    }
    return same;
  }
  friend constexpr bool operator==(ArrayRef a, ArrayRef b) {
    return a.equals(b);
  }
  std::vector<T> vec() const {
    return std::vector<T>(begin(), end());
  }

 private:
  void check(bool is_within) const {
    if (!is_within) [[unlikely]] {
      interop::stable::raise(
          interop::stable::Kind::runtime, "ArrayRef: the index is not within its ", size_, " elements");
    }
  }

  const T* data_ = nullptr;
  size_t size_ = 0;
};

using IntArrayRef = ArrayRef<int64_t>;

}  // namespace c10

namespace at {
using namespace c10;
}
