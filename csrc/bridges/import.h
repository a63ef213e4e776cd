// Tensors over foreign memory: the checks, the construction, and the copies.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/clone_ops.h>
#include <ATen/ops/lift_fresh_ops.h>
#include <c10/core/Allocator.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/Exception.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <utility>

#include "interop/bridges.h"
#include "interop/bridges/dtypes.h"
#include "interop/check_memory.h"
#include "interop/device_guard.h"
#include "interop/gil.h"
#include "reused.h"

namespace interop::bridges {

// The limit of NumPy and memoryview. torch has none.
inline constexpr int max_dim = 64;

// The subject of a message: the argument's name, and advice for memory that cannot be shared.
struct Subject {
  const char* argument;
  const char* advice;
};

inline std::ostream& operator<<(std::ostream& out, const Subject& subject) {
  return out << ArgumentName{subject.argument};
}

// The unit of strides.
enum class Unit { bytes, elements };

// A tensor's sizes and strides, in elements, made from an exporter's, which are not trusted.
//
// The stride of an axis of size <= 1 is never used, so any value is valid; one that torch would reject becomes the
// stride of a contiguous tensor. The same holds for all axes of an empty tensor.
class ForeignLayout {
 public:
  // `strides` may be null: then the elements are C-contiguous.
  template <class Int>
  ForeignLayout(const Subject& subject, int ndim, const Int* sizes, const Int* strides, const Dtype& dtype, Unit unit) {
    static_assert(sizeof(Int) == sizeof(int64_t));
    TORCH_CHECK_VALUE(0 <= ndim && ndim <= max_dim, subject, " must have 0 to ", max_dim, " dimensions, got ", ndim);
    TORCH_CHECK_VALUE(ndim == 0 || sizes, subject, " must have a shape, got none");
    ndim_ = static_cast<unsigned>(ndim);
    // Not members, which would be written to memory in each iteration: the exporter's arrays might be in `*this`.
    int64_t numel = 1;
    bool overflows = false;
    bool empty = false;
    for (int d = 0; d < ndim; ++d) {
      TORCH_CHECK_VALUE(sizes[d] >= 0, subject, " must have sizes >= 0, got ", sizes[d], " on axis ", d);
      sizes_[d] = sizes[d];
      empty |= sizes[d] == 0;
      overflows |= __builtin_mul_overflow(numel, sizes[d], &numel);
    }
    // The product may wrap to 0. With a later size of 0 the true product is 0, but torch overflows there as we do.
    const bool countable = !overflows;
    numel_ = empty ? 0 : numel;
    const int64_t step = unit == Unit::bytes ? dtype.size : 1;
    const unsigned shift = unit == Unit::bytes ? detail::log2(dtype.size) : 0;
    int64_t last = 0;  // the index of the last element
    int64_t dense = 1;
    for (int d = ndim - 1; d >= 0; --d) {
      const bool stepped = sizes_[d] > 1 && !empty;
      if (strides == nullptr) {
        strides_[d] = dense;
      } else if (strides[d] >= 0 && (strides[d] & (step - 1)) == 0) [[likely]] {
        strides_[d] = strides[d] >> shift;
      } else if (stepped) {
        refuse(subject, strides[d], step, d);
      } else {
        strides_[d] = dense;
      }
      if (stepped) {
        int64_t reach;
        overflows |= __builtin_mul_overflow(sizes_[d] - 1, strides_[d], &reach);
        overflows |= __builtin_add_overflow(last, reach, &last);
      }
      // An empty tensor gets the strides for sizes of at least 1, as in torch.
      if (sizes_[d] > 1 && __builtin_mul_overflow(strides_[d], sizes_[d], &dense)) {
        dense = std::numeric_limits<int64_t>::max();
      } else if (sizes_[d] <= 1) {
        dense = strides_[d];
      }
    }
    overflows |= __builtin_add_overflow(last, 1, &last);
    overflows |= __builtin_mul_overflow(last, static_cast<int64_t>(dtype.size), &last);
    TORCH_CHECK_VALUE(
        countable && (!overflows || empty), subject, " must fit into the address space, got sizes ", this->sizes(),
        " of ", static_cast<int>(dtype.size), " bytes each");
    nbytes_ = empty ? 0 : last;
  }

  at::IntArrayRef sizes() const noexcept {
    return {sizes_, ndim_};
  }
  at::IntArrayRef strides() const noexcept {
    return {strides_, ndim_};
  }
  int64_t numel() const noexcept {
    return numel_;
  }
  // Bytes from the first element to the end of the last.
  int64_t nbytes() const noexcept {
    return nbytes_;
  }

 private:
  [[noreturn]] static void refuse(const Subject& subject, int64_t stride, int64_t step, int axis) {
    TORCH_CHECK_VALUE(
        stride >= 0, subject, " must not have negative strides, which torch does not have, got ", stride, " on axis ",
        axis, "; ", subject.advice);
    TORCH_CHECK_VALUE(
        false, subject, " must have strides that are multiples of its item size, ", step, " bytes, got ", stride,
        " on axis ", axis, "; ", subject.advice);
  }

  int64_t sizes_[max_dim];
  int64_t strides_[max_dim];
  int64_t numel_;
  int64_t nbytes_;
  unsigned ndim_;
};

// The address of the first element, `offset` bytes after `base`; `base` if there are no elements. Raises unless all
// elements can be read there as `dtype`. All importers call this.
inline void* first_element(
    const Subject& subject, void* base, uint64_t offset, const Dtype& dtype, const ForeignLayout& layout) {
  if (layout.numel() == 0) {
    return base;
  }
  TORCH_CHECK_VALUE(
      base != nullptr, subject, " must have memory, got a null pointer for ", layout.numel(), " elements",
      offset == 0 ? std::string() : " and a byte offset of " + std::to_string(offset));
  uintptr_t address;
  uintptr_t end;
  TORCH_CHECK_VALUE(
      !__builtin_add_overflow(reinterpret_cast<uintptr_t>(base), offset, &address) &&
          !__builtin_add_overflow(address, static_cast<uintptr_t>(layout.nbytes()), &end),
      subject, " must be in the address space, got ", layout.nbytes(), " bytes from the address ", base,
      ", after a byte offset of ", offset);
  TORCH_CHECK_VALUE(
      (address & (dtype.alignment - 1U)) == 0, subject, " must be aligned to ", static_cast<int>(dtype.alignment),
      " bytes, got the address ", reinterpret_cast<void*>(address), "; ", subject.advice);
  return reinterpret_cast<void*>(address);
}

// A tensor over `memory`, whose deleter runs when the storage dies, after the last tensor, view and storage object.
// The storage cannot be resized. Check the pointer and the layout first.
inline at::Tensor tensor_over(c10::DataPtr memory, const ForeignLayout& layout, const Dtype& dtype) {
  const c10::DispatchKey key = memory.device().is_cpu() ? c10::DispatchKey::CPU : c10::DispatchKey::CUDA;
  auto storage = c10::make_intrusive<Reused<c10::StorageImpl>>(
      c10::StorageImpl::use_byte_size_t(), layout.nbytes(), std::move(memory), nullptr, false);
  auto impl = c10::make_intrusive<Reused<c10::TensorImpl>>(
      c10::Storage(std::move(storage)), c10::DispatchKeySet(key), c10::scalarTypeToTypeMeta(dtype.type));
  impl->set_sizes_and_strides(layout.sizes(), layout.strides());
  return at::Tensor(std::move(impl));
}

// Passes a new tensor to modes that track all tensors, such as FakeTensorMode. torch does the same with tensors from
// NumPy.
inline at::Tensor lift_fresh(at::Tensor tensor) {
  // As c10::impl::dispatch_mode_enabled(), which takes eight times the instructions.
  const bool followed = c10::impl::tls_local_dispatch_key_set().included_.has(c10::DispatchKey::Python);
  return followed ? at::_ops::lift_fresh::call(tensor) : std::move(tensor);
}

// Copies release the GIL, because their time grows with their memory.

inline at::Tensor contiguous_copy(const at::Tensor& tensor) {
  const NoGil no_gil;
  return at::_ops::clone::call(tensor, c10::MemoryFormat::Contiguous);
}

// On another device.
inline at::Tensor copy_on(const at::Tensor& tensor, const c10::Device& device) {
  const NoGil no_gil;
  return tensor.to(tensor.options().device(device));
}

// Waits for the copy of foreign memory. On CUDA it is queued on torch's current stream, of which the exporter knows
// nothing: it may change or free the memory as soon as the tensor over it has gone. While a graph is captured, nothing
// is copied yet, and waiting would end the capture.
inline at::Tensor finished(at::Tensor copied, const c10::Device& from) {
  const auto* devices = from.is_cuda() ? interop::detail::find_devices(c10::kCUDA) : nullptr;
  if (!devices) {
    return copied;
  }
  const NoGil no_gil;
  const c10::Stream stream = devices->getStream(from);
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13
  if (devices->isStreamCapturing(stream)) {
    return copied;
  }
#endif
  devices->synchronizeStream(stream);
  return copied;
}

// Raises ValueError for read-only memory if `on_readonly` is raise. `got` names the memory in the message.
inline void check_writable(bool read_only, OnReadonly on_readonly, const char* argument, const char* got) {
  TORCH_CHECK_VALUE(
      !read_only || on_readonly != OnReadonly::raise, ArgumentName{argument}, " must be writable, got ", got,
      ", and torch has no read-only tensors; pass on_readonly='copy', or on_readonly='share' if nothing will write to "
      "the tensor");
}

// The tensor itself, over foreign memory, or a copy if that is read-only and `on_readonly` is copy.
inline at::Tensor shared_or_copied(at::Tensor tensor, bool read_only, OnReadonly on_readonly) {
  if (read_only && on_readonly == OnReadonly::copy) {
    return finished(contiguous_copy(tensor), tensor.device());
  }
  return tensor;
}

}  // namespace interop::bridges
