// Tells ThreadSanitizer how torch's threads are ordered, which it does not see, as torch is not instrumented.
#pragma once

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

// What a thread did before it calls tsan_release(object) happened before what follows tsan_acquire(object) elsewhere.
inline void tsan_release([[maybe_unused]] void* object) noexcept {
#ifdef INTEROP_UNDER_TSAN
  __tsan_release(object);
#endif
}

inline void tsan_acquire([[maybe_unused]] void* object) noexcept {
#ifdef INTEROP_UNDER_TSAN
  __tsan_acquire(object);
#endif
}

}  // namespace interop::detail
