// Keeps a tensor's memory alive while others use it.
//
// An owner is identified by its deleter's address, and each shared library has its own copy of these functions. So
// only interop._bridges uses this header; other modules use the functions in interop/bridges.h.
//
// Keeping the storage alive is not enough. share_memory_() and resizing give the storage other memory and free the
// old. So the owner of the memory, the storage's DataPtr, gets a reference count.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/dlpack.h>
#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <cstdint>
#include <iterator>
#include <utility>

#include "interop/free_threading.h"
#include "owner.h"

namespace interop::bridges {

namespace detail {

// Hold this lock to read or replace the owner of a storage's memory. All storages share a fixed set of locks. Each
// lock has its own cache line, so that threads with different storages seldom contend.
class StorageLock {
#ifdef Py_GIL_DISABLED
 public:
  explicit StorageLock(const c10::StorageImpl& storage) noexcept
      : lock_(locks_[(reinterpret_cast<uintptr_t>(&storage) >> 6) % std::size(locks_)].mutex) {}

 private:
  struct alignas(64) Alone {
    Mutex mutex;
  };
  static inline Alone locks_[256];

  const Lock lock_;
#else
 public:
  explicit StorageLock(const c10::StorageImpl&) noexcept {}
  ~StorageLock() {}  // avoids an unused variable
#endif
};

// The deleter of memory that torch took over: torch.from_numpy, frombuffer and from_dlpack, at::from_blob.
inline c10::DeleterFnPtr deleter_of_others() {
  static const c10::DeleterFnPtr found =
      c10::InefficientStdFunctionContext::makeDataPtr(nullptr, [](void*) {}, c10::kCPU).get_deleter();
  return found;
}

// The deleter of memory that a managed tensor of torch owns: dlpack.cpp.
template <class Managed>
void drop_managed(void* managed) noexcept;

// Whether torch only deletes the memory's owner. torch uses other owners further: it asks that of shared memory for
// its file name.
inline bool is_only_deleted(c10::StorageImpl& storage) {
  const c10::DataPtr& memory = storage._mutable_data_ptr_no_checks();
  if (memory.get() == nullptr || !memory.device().is_cpu()) {
    return false;
  }
  const c10::DeleterFnPtr deleter = memory.get_deleter();
  if (deleter == deleter_of_others() || deleter == &drop_managed<DLManagedTensor> ||
      deleter == &drop_managed<DLManagedTensorVersioned>) {
    return true;
  }
  return memory.get_context() == memory.get() && storage.allocator() != nullptr &&
         storage.allocator()->raw_deleter() == deleter;
}

}  // namespace detail

// The reference count of memory that torch allocated or took over. Its owners are the storage and the exports.
class Shared {
 public:
  // The count of this memory, or null. Any thread.
  static Shared* find(const c10::DataPtr& memory) noexcept {
    return memory.get_deleter() == &drop ? static_cast<Shared*>(memory.get_context()) : nullptr;
  }

  // The same, installed if possible. Needs the GIL or the StorageLock, so that only one is installed.
  //
  // Other threads may read the data pointer at any time; it never changes.
  static Shared* find_or_make(c10::StorageImpl& storage) {
    c10::DataPtr& memory = storage._mutable_data_ptr_no_checks();
    if (Shared* found = find(memory)) {
      return found;
    }
    if (!detail::is_only_deleted(storage)) {
      return nullptr;
    }
    auto* made = new Shared(memory.get_context(), memory.get_deleter());
    const c10::Device device = memory.device();
    void* data = memory.get();
    memory.release_context();
    memory = c10::DataPtr(data, made, &drop, device);
    return made;
  }

  void keep() noexcept {
    owners_.fetch_add(1, std::memory_order_relaxed);
  }

  // The deleter: removes one owner.
  static void drop(void* shared) noexcept {
    auto* self = static_cast<Shared*>(shared);
    if (self->owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      detail::free_flat<detail::Needs::nothing>(self->deleter_, self->context_);
      delete self;
    }
  }

 private:
  Shared(void* context, c10::DeleterFnPtr deleter) noexcept : context_(context), deleter_(deleter) {}

  std::atomic<size_t> owners_{1};
  void* context_;
  c10::DeleterFnPtr deleter_;
};

namespace detail {

inline void pin(c10::StorageImpl& storage) {
  if (storage.resizable()) {
    storage.set_resizable(false);
  }
}

}  // namespace detail

// Forbids resizing the storage for good, as torch does for its ndarrays. Never allow it again: torch does not count
// the users that rely on it.
inline void pin_for_good(c10::StorageImpl& storage) {
  const detail::StorageLock lock(storage);
  detail::pin(storage);
}

// Whether the storage may be resized after the memory is taken: see pin_for_good().
enum class Resizing { as_before, never };

// Keeps memory alive through its reference count, its Python owner, or else its storage, which is then pinned. In the
// first two cases the memory also survives when the storage gets other memory.
class Hold {
 public:
  // For Owner<Hold>, the base of an ndarray.
  static constexpr const char* type_name = "interop._bridges.Memory";
  static constexpr const char* doc = "Keeps the memory of a tensor alive for an array that shares it.";

  Hold() noexcept = default;

  // Holds the memory that `storage` has now. Needs the GIL.
  static Hold of(c10::StorageImpl& storage, Resizing resizing = Resizing::as_before) {
    const detail::StorageLock lock(storage);
    if (resizing == Resizing::never) {
      detail::pin(storage);
    }
    const c10::DataPtr& memory = storage._mutable_data_ptr_no_checks();
    const c10::DeleterFnPtr deleter = memory.get_deleter();
    if (deleter == &drop_owner || deleter == &drop_read_only_owner) {
      return Hold(Py_NewRef(static_cast<PyObject*>(memory.get_context())), &drop_owner);
    }
    if (deleter == &drop_storage) {
      c10::raw::intrusive_ptr::incref(static_cast<c10::StorageImpl*>(memory.get_context()));
      return Hold(memory.get_context(), &drop_storage);
    }
    if (Shared* shared = Shared::find_or_make(storage)) {
      shared->keep();
      return Hold(shared, &Shared::drop);
    }
    detail::pin(storage);
    c10::raw::intrusive_ptr::incref(&storage);
    return Hold(&storage, &drop_storage);
  }

  Hold(Hold&& other) noexcept : what_(std::exchange(other.what_, nullptr)), drop_(other.drop_) {}
  Hold& operator=(Hold&& other) noexcept {
    std::swap(what_, other.what_);
    std::swap(drop_, other.drop_);
    return *this;
  }
  ~Hold() {
    if (what_) {
      drop_(what_);
    }
  }

  // Whether the memory survives when its storage gets other memory.
  bool outlasts_storage() const noexcept {
    return what_ != nullptr && drop_ != &drop_storage;
  }

  // Another hold on the same memory. Needs the GIL.
  Hold again() const noexcept {
    if (drop_ == &drop_owner) {
      Py_XINCREF(static_cast<PyObject*>(what_));
    } else if (drop_ == &Shared::drop) {
      static_cast<Shared*>(what_)->keep();
    } else if (what_) {
      c10::raw::intrusive_ptr::incref(static_cast<c10::StorageImpl*>(what_));
    }
    return Hold(what_, drop_);
  }

  // The Python object that keeps the memory alive: its owner if there is one, otherwise an Owner. Needs the GIL.
  OwnedRef into_object() &&;

  // The Python object that owns the memory, borrowed; null if none does.
  PyObject* python_owner() const noexcept {
    return drop_ == &drop_owner ? static_cast<PyObject*>(what_) : nullptr;
  }

  // An Owner, also of memory that has a Python owner, for a consumer that might extend a chain of owners. Owners are
  // freed without recursion. Needs the GIL.
  OwnedRef into_owner() &&;

  // A DataPtr for `data`, an address in that memory; takes over the hold. Needs the GIL.
  c10::DataPtr into_data_ptr(void* data, c10::Device device, bool read_only) &&;

 private:
  Hold(void* what, c10::DeleterFnPtr drop) noexcept : what_(what), drop_(drop) {}

  static void drop_storage(void* storage) noexcept {
    detail::free_flat<detail::Needs::nothing>(
        [](void* one) { c10::raw::intrusive_ptr::decref(static_cast<c10::StorageImpl*>(one)); }, storage);
  }

  void* what_ = nullptr;
  c10::DeleterFnPtr drop_ = nullptr;
};

inline OwnedRef Hold::into_object() && {
  if (drop_ == &drop_owner && what_) {
    return OwnedRef(static_cast<PyObject*>(std::exchange(what_, nullptr)));
  }
  return std::move(*this).into_owner();
}

inline OwnedRef Hold::into_owner() && {
  return Owner<Hold>::make(std::move(*this));
}

inline c10::DataPtr Hold::into_data_ptr(void* data, c10::Device device, bool read_only) && {
  if (read_only) {  // only a Python owner has a read-only deleter
    return {data, std::move(*this).into_object().release(), &drop_read_only_owner, device};
  }
  return {data, std::exchange(what_, nullptr), drop_, device};
}

namespace detail {

inline bool is_read_only(c10::StorageImpl& storage) noexcept {
  return storage._mutable_data_ptr_no_checks().get_deleter() == &drop_read_only_owner;
}

}  // namespace detail

// Whether the memory has a read-only owner.
inline bool is_read_only(c10::StorageImpl& storage) noexcept {
  const detail::StorageLock lock(storage);
  return detail::is_read_only(storage);
}

}  // namespace interop::bridges
