// Element access to a CPU tensor by indices: accessor[i][j].
//
// Like at::TensorAccessor, with three differences. The constructor checks the tensor (check_memory.h). An accessor has
// its own copy of the sizes and strides, so resizing the tensor does not invalidate them. Modules compiled with
// INTEROP_BOUNDSCHECK check every index.
//
// An accessor holds a reference to the tensor's storage, so the memory lives as long as the accessor, even if the
// tensor is a temporary or set_() gives it another storage. Only an operation that replaces the memory of the storage
// itself invalidates the accessor: resizing the storage, or moving it to shared memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>

#include "interop/check_memory.h"

// Modules with and without the macro may share a process, so their classes must have different names.
#ifdef INTEROP_BOUNDSCHECK
#define INTEROP_ACCESSORS checked_accessors
#else
#define INTEROP_ACCESSORS unchecked_accessors
#endif

namespace interop {

namespace detail {

[[noreturn]] C10_NOINLINE inline void out_of_bounds(int64_t index, int64_t dimension, int64_t size) {
  TORCH_CHECK_INDEX(
      false, "index ", index, " is out of bounds for dimension ", dimension, " with size ", size,
      "; indices of an accessor count from 0");
}

}  // namespace detail

inline namespace INTEROP_ACCESSORS {

#ifdef INTEROP_BOUNDSCHECK
inline constexpr bool bounds_checked = true;
#else
inline constexpr bool bounds_checked = false;
#endif

template <class T, size_t N>
class Row;

// The element at `index` if N is 1, else the Row of the remaining dimensions.
template <class T, size_t N>
C10_ALWAYS_INLINE decltype(auto) go(
    T* data,
    [[maybe_unused]] const int64_t* sizes,
    const int64_t* strides,
    [[maybe_unused]] int64_t dimension,
    int64_t index) noexcept(!bounds_checked) {
#ifdef INTEROP_BOUNDSCHECK
  if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(*sizes)) {
    detail::out_of_bounds(index, dimension, *sizes);
  }
#endif
  if constexpr (N == 1) {
    return (data[index * *strides]);
  } else {
    return Row<T, N - 1>(data + index * *strides, sizes + 1, strides + 1, dimension + 1);
  }
}

// The N remaining dimensions of an accessor after indexing. A Row borrows the memory and nothing else, because Cython
// may keep it in a variable for longer than the accessor that it came from.
template <class T, size_t N>
class Row {
 public:
  Row() noexcept = default;  // for Cython, which declares a variable before it assigns to it
  Row(T* data,
      [[maybe_unused]] const int64_t* sizes,
      const int64_t* strides,
      [[maybe_unused]] int64_t dimension) noexcept
      : data_(data) {
    for (size_t d = 0; d < N; ++d) {
      strides_[d] = strides[d];
    }
#ifdef INTEROP_BOUNDSCHECK
    for (size_t d = 0; d < N; ++d) {
      sizes_[d] = sizes[d];
    }
    dimension_ = dimension;
#endif
  }

  C10_ALWAYS_INLINE decltype(auto) operator[](int64_t index) const noexcept(!bounds_checked) {
#ifdef INTEROP_BOUNDSCHECK
    return go<T, N>(data_, sizes_.data(), strides_.data(), dimension_, index);
#else
    return go<T, N>(data_, strides_.data(), strides_.data(), 0, index);  // the sizes are not used
#endif
  }

 private:
  T* data_ = nullptr;
  std::array<int64_t, N> strides_{};
#ifdef INTEROP_BOUNDSCHECK
  std::array<int64_t, N> sizes_{};
  int64_t dimension_ = 0;
#endif
};

// With a const T it only reads. Otherwise the constructor increments the tensor's version, once for all writes.
template <class T, size_t N>
class Accessor {
 public:
  // An accessor without elements, for Cython, which declares a variable before it assigns to it.
  Accessor() noexcept = default;

  explicit Accessor(const at::Tensor& tensor, const char* argument = "tensor") {
    check_data(tensor, argument, scalar_type_of<T>(), static_cast<int64_t>(N));
    storage_ = tensor.storage();
    if constexpr (std::is_const_v<T>) {
      data_ = static_cast<T*>(tensor.const_data_ptr());
    } else {
      check_write(tensor, argument);
      data_ = static_cast<T*>(tensor.mutable_data_ptr());
    }
    for (size_t d = 0; d < N; ++d) {
      sizes_[d] = tensor.size(static_cast<int64_t>(d));
      strides_[d] = tensor.stride(static_cast<int64_t>(d));
    }
  }

  C10_ALWAYS_INLINE decltype(auto) operator[](int64_t index) const noexcept(!bounds_checked) {
    return go<T, N>(data_, sizes_.data(), strides_.data(), 0, index);
  }

  int64_t size(int64_t dim) const {
    return at_dim(sizes_, dim);
  }
  int64_t stride(int64_t dim) const {
    return at_dim(strides_, dim);
  }
  T* data() const noexcept {
    return data_;
  }

 private:
  static int64_t at_dim(const std::array<int64_t, N>& values, int64_t dim) {
    const int64_t wrapped = dim < 0 ? dim + static_cast<int64_t>(N) : dim;
    TORCH_CHECK_INDEX(
        0 <= wrapped && wrapped < static_cast<int64_t>(N), "dimension out of range (expected to be in range of [",
        -static_cast<int64_t>(N), ", ", N - 1, "], but got ", dim, ")");
    return values[static_cast<size_t>(wrapped)];
  }

  c10::Storage storage_;
  T* data_ = nullptr;
  std::array<int64_t, N> sizes_{};
  std::array<int64_t, N> strides_{};
};

// Aliases for Cython, which has only types as template arguments.
template <class T>
using Accessor1 = Accessor<T, 1>;
template <class T>
using Accessor2 = Accessor<T, 2>;
template <class T>
using Accessor3 = Accessor<T, 3>;
template <class T>
using Accessor4 = Accessor<T, 4>;
template <class T>
using ConstAccessor1 = Accessor<const T, 1>;
template <class T>
using ConstAccessor2 = Accessor<const T, 2>;
template <class T>
using ConstAccessor3 = Accessor<const T, 3>;
template <class T>
using ConstAccessor4 = Accessor<const T, 4>;
template <class T>
using Row1 = Row<T, 1>;
template <class T>
using Row2 = Row<T, 2>;
template <class T>
using Row3 = Row<T, 3>;
template <class T>
using ConstRow1 = Row<const T, 1>;
template <class T>
using ConstRow2 = Row<const T, 2>;
template <class T>
using ConstRow3 = Row<const T, 3>;

}  // namespace INTEROP_ACCESSORS
}  // namespace interop
