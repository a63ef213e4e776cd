// Decides whether a tensor's memory may be exported, and how. What holds for any access to it is in
// interop/check_memory.h.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>

#include "interop/check_memory.h"
#include "memory.h"

namespace interop::bridges {

// The result of check_export().
struct Exported {
  c10::StorageImpl* storage;  // borrowed from the tensor
  void* data;                 // of the first element; null without memory
  bool writable;
  bool contiguous;  // in C order; also without elements
};

// The purpose of an export: to write, unknown, or to read, by a user who has considered gradients.
enum class Access { write, any, read };

// For an argument `readonly`.
constexpr Access access(bool read_only) noexcept {
  return read_only ? Access::read : Access::write;
}

// The devices whose memory may be exported.
enum class Devices { cpu, cpu_or_cuda };

namespace detail {

// If a tensor has no keys but these, its memory holds its values.
inline constexpr c10::DispatchKeySet ordinary_keys({
    c10::DispatchKey::CPU,
    c10::DispatchKey::AutogradCPU,
    c10::DispatchKey::ADInplaceOrView,
    c10::DispatchKey::AutocastCPU,
});
inline constexpr c10::DispatchKeySet ordinary_cuda_keys = ordinary_keys | c10::DispatchKeySet({
                                                                              c10::DispatchKey::CUDA,
                                                                              c10::DispatchKey::AutogradCUDA,
                                                                              c10::DispatchKey::AutocastCUDA,
                                                                          });

// Checks a tensor that has other keys.
inline void check_unusual(const at::Tensor& tensor, const char* argument, Devices devices) {
  if (devices == Devices::cpu_or_cuda && tensor.defined() && !tensor.is_meta() &&
      !tensor.key_set().has(c10::DispatchKey::Python)) {
    // Before the storage, which may be absent or without bytes on other devices.
    TORCH_CHECK_TYPE(
        tensor.is_cpu() || tensor.is_cuda(), ArgumentName{argument}, " must be on device cpu or cuda, got ",
        tensor.device(), "; copy it with .cpu()");
  }
  check_data(tensor, argument, devices == Devices::cpu ? Copes::with_nothing : Copes::with_any_device);
}

// Raises unless the bytes of all elements are countable, with sizes of 0 as 1: NumPy counts them so, and the strides of
// a contiguous buffer need it. Elements that share memory may exceed the memory.
inline void check_countable(const at::Tensor& tensor, const char* argument) {
  auto bytes = static_cast<int64_t>(tensor.itemsize());
  bool overflows = false;
  for (const int64_t size : tensor.sizes()) {
    overflows |= __builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes);
  }
  TORCH_CHECK_VALUE(
      !overflows, ArgumentName{argument},
      " must have at most 2**63 - 1 bytes in all elements, with sizes of 0 as 1, got ",
      interop::detail::dtype_name(tensor.scalar_type()), " with sizes ", tensor.sizes(),
      "; take a part of it, such as tensor[0]");
}

struct Extent {
  bool inside;    // the storage
  bool overlaps;  // elements share memory, as after expand()
  bool contiguous;
};

[[gnu::always_inline]] inline Extent extent(const at::TensorBase& tensor, size_t storage_bytes) noexcept {
  if (tensor.is_contiguous()) {  // so are tensors without elements
    int64_t last;
    const bool overflows = __builtin_add_overflow(tensor.storage_offset(), tensor.numel(), &last) ||
                           __builtin_mul_overflow(last, static_cast<int64_t>(tensor.itemsize()), &last);
    return {tensor.numel() == 0 || (!overflows && static_cast<size_t>(last) <= storage_bytes), false, true};
  }
  const at::IntArrayRef sizes = tensor.sizes();
  const at::IntArrayRef strides = tensor.strides();
  int64_t last = tensor.storage_offset();
  bool overflows = last < 0;
  bool overlaps = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t reach;
    overflows |= __builtin_mul_overflow(sizes[d] - 1, strides[d], &reach);
    overflows |= __builtin_add_overflow(last, reach, &last);
    overlaps |= sizes[d] > 1 && strides[d] == 0;
  }
  overflows |= __builtin_add_overflow(last, 1, &last);
  overflows |= __builtin_mul_overflow(last, static_cast<int64_t>(tensor.itemsize()), &last);
  return {!overflows && static_cast<size_t>(last) <= storage_bytes, overlaps, false};
}

}  // namespace detail

// Raises unless a tensor's memory may be exported. Except with Access::read, autograd must not watch the tensor, or
// gradients would be wrong or missing. Memory of expand() and of a read-only owner is always exported read-only.
// Copy-on-write memory is copied now.
//
// Does not increment the version: nothing has been written yet.
[[gnu::always_inline]] inline Exported check_export(
    const at::Tensor& tensor, const char* argument, Access access, Devices devices = Devices::cpu) {
  const c10::DispatchKeySet keys = devices == Devices::cpu ? detail::ordinary_keys : detail::ordinary_cuda_keys;
  const bool ordinary =
      tensor.defined() && tensor.has_storage() && (tensor.key_set().raw_repr() & ~keys.raw_repr()) == 0;
  if (!ordinary) [[unlikely]] {
    detail::check_unusual(tensor, argument, devices);
  }
  // Autograd keeps its state in autograd_meta, which most tensors lack.
  if (access != Access::read && tensor.unsafeGetTensorImpl()->autograd_meta() != nullptr) {
    check_unwatched(
        tensor, argument,
        "share .detach(), share it under torch.no_grad(), or pass readonly=True to the function of interop that "
        "shares",
        access == Access::any);
  }
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  TORCH_CHECK_TYPE(storage != nullptr, ArgumentName{argument}, " must have a storage, got a tensor that has none");
  const detail::Extent extent = detail::extent(tensor, storage->nbytes());
  TORCH_CHECK_VALUE(
      extent.inside, ArgumentName{argument}, " must lie within its storage of ", storage->nbytes(),
      " bytes, got sizes ", tensor.sizes(), ", strides ", tensor.strides(), " and offset ", tensor.storage_offset(),
      "; its storage was resized");
  const detail::StorageLock lock(*storage);
  char* data = static_cast<char*>(storage->mutable_data());
  TORCH_CHECK_VALUE(
      data != nullptr || tensor.numel() == 0, ArgumentName{argument},
      " must have memory, got a storage without memory; copy the tensor with .clone()");
  if (data) {
    data += tensor.storage_offset() * static_cast<int64_t>(tensor.itemsize());
  }
  const bool writable = access != Access::read && !extent.overlaps && !detail::is_read_only(*storage);
  return {storage, data, writable, extent.contiguous};
}

// check_export() for consumers that count the bytes of all elements.
[[gnu::always_inline]] inline Exported check_counted_export(
    const at::Tensor& tensor, const char* argument, Access access) {
  const Exported exported = check_export(tensor, argument, access);
  if (!exported.contiguous || tensor.numel() == 0) {  // otherwise the storage has all these bytes
    detail::check_countable(tensor, argument);
  }
  return exported;
}

}  // namespace interop::bridges
