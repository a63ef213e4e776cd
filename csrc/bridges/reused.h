// Tensors over foreign memory usually live for one call. So each thread keeps the memory of the last tensor that died
// on it, and of the last storage, for the next ones. Most of malloc and free is saved.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace interop::bridges {

// A T whose memory is reused. The destructor of T is virtual, so all that delete a T give the memory back here.
template <class T>
class Reused final : public T {
 public:
  using T::T;

  static void* operator new(size_t size) {
    void*& kept = kept_.memory;
    if (kept && kept != closed()) [[likely]] {
      return std::exchange(kept, nullptr);
    }
    return ::operator new(size);
  }

  static void operator delete(void* memory) noexcept {
    Kept& kept = kept_;
    if (kept.memory) {
      ::operator delete(memory);
      return;
    }
    if (!kept.is_freed_at_exit) [[unlikely]] {
      static thread_local const AtExit at_exit;
      kept.is_freed_at_exit = true;
    }
    kept.memory = memory;
  }

 private:
  // Frees the memory when the thread ends. What dies later on that thread, in the destructor of a pthread key, is freed
  // at once. If it is the first that dies on that thread, it is lost: nothing calls this destructor any more.
  struct AtExit {
    constexpr AtExit() noexcept = default;
    ~AtExit() {
      ::operator delete(std::exchange(kept_.memory, closed()));
    }
  };

  static void* closed() noexcept {
    static char mark;
    return &mark;
  }

  // Not AtExit's own, because nothing may use an object after its destructor. The flag is beside the memory, because
  // finding another variable of a thread takes a call.
  struct Kept {
    void* memory;
    bool is_freed_at_exit;
  };
  static inline constinit thread_local Kept kept_{};
};

}  // namespace interop::bridges
