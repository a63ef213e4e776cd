// Tells ThreadSanitizer that the parts of a loop begin after the caller has reached it, and end before the caller goes
// on. The checker does not see this, because torch's threads are not instrumented.
#pragma once

#include <type_traits>
#include <utility>

#ifdef __SANITIZE_THREAD__
#define INTEROP_UNDER_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define INTEROP_UNDER_TSAN
#endif
#endif

#ifdef INTEROP_UNDER_TSAN
extern "C" void __tsan_acquire(void* object);
extern "C" void __tsan_release(void* object);
#endif

namespace interop::detail {

// A function that torch's threads call for each part of a loop. It lives exactly as long as the loop runs.
//
// ATen reduces to one element in two loops of one function: the second one, on the caller's thread, reads what the
// parts of the first have written. `is_on_threads` says whether the calling part is of a loop on several threads.
template <class F>
class LoopBody {
 public:
  explicit LoopBody(F f, [[maybe_unused]] bool (*is_on_threads)() = [] { return true; }) : f_(std::move(f)) {
#ifdef INTEROP_UNDER_TSAN
    is_on_threads_ = is_on_threads;
    __tsan_release(&begun_);
#endif
  }

  LoopBody(const LoopBody&) = delete;
  LoopBody& operator=(const LoopBody&) = delete;

  ~LoopBody() {
#ifdef INTEROP_UNDER_TSAN
    __tsan_acquire(&ended_);
#endif
  }

  template <class... Arguments>
    requires std::is_invocable_v<const F&, Arguments...>  // so that ATen recognises a two-dimensional loop
  void operator()(Arguments&&... arguments) const {
#ifdef INTEROP_UNDER_TSAN
    struct Part {
      const LoopBody& body;
      explicit Part(const LoopBody& given) : body(given) {
        __tsan_acquire(&body.begun_);
        if (!body.is_on_threads_()) {
          __tsan_acquire(&body.ended_);
        }
      }
      ~Part() {
        __tsan_release(&body.ended_);
      }
    } part(*this);
#endif
    f_(std::forward<Arguments>(arguments)...);
  }

 private:
  F f_;
#ifdef INTEROP_UNDER_TSAN
  bool (*is_on_threads_)();
  // Two objects. With one, a part would be ordered after those that ended before it, and their races be hidden.
  mutable char begun_;
  mutable char ended_;
#endif
};

}  // namespace interop::detail

#undef INTEROP_UNDER_TSAN
