// c10::Storage whose methods raise where c10::Storage's would read a null pointer.
#pragma once

#include <c10/core/Storage.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <utility>

namespace interop {

// The memory behind one or more tensors. A default-constructed Storage has none.
class Storage : public c10::Storage {
 public:
  Storage() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): what at::Tensor::storage() returns
  Storage(c10::Storage storage) noexcept : c10::Storage(std::move(storage)) {}

  size_t nbytes() const {
    return checked().nbytes();
  }
  const void* data() const {
    return checked().data();
  }
  void* mutable_data() const {
    return checked().mutable_data();
  }
  bool resizable() const {
    return checked().resizable();
  }
  c10::Device device() const {
    return checked().device();
  }
  bool is_alias_of(const Storage& other) const {
    return checked().is_alias_of(other.checked());
  }

 private:
  const c10::Storage& checked() const {
    TORCH_CHECK_VALUE(unsafeGetStorageImpl() != nullptr, "the storage is undefined; take a tensor's with t.storage()");
    return *this;
  }
};

}  // namespace interop
