// A list or nothing. Converts from both, like torch's class.
#pragma once

#include <concepts>
#include <optional>

#include "c10/util/ArrayRef.h"

namespace c10 {

template <class T>
class OptionalArrayRef {
 public:
  OptionalArrayRef() noexcept = default;
  OptionalArrayRef(std::nullopt_t) noexcept {}
  template <std::convertible_to<ArrayRef<T>> A>
  OptionalArrayRef(const A& list) noexcept : list_(ArrayRef<T>(list)) {}

  bool has_value() const noexcept {
    return list_.has_value();
  }
  explicit operator bool() const noexcept {
    return has_value();
  }
  const ArrayRef<T>& value() const {
    return list_.value();
  }
  const ArrayRef<T>& operator*() const noexcept {
    return *list_;
  }

 private:
  std::optional<ArrayRef<T>> list_;
};

using OptionalIntArrayRef = OptionalArrayRef<int64_t>;

}  // namespace c10

namespace at {
using namespace c10;
}
