// Loops on torch's own threads, with a body written in Cython. torch's compiled loop runs them, so that the number of
// threads depends on no compiler flag.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

#include "ATen/Parallel.h"
#include "interop/callback.h"
#include "interop/gil.h"
#include "interop/stable/errors.h"

namespace interop {

using Part = void (*)(int64_t begin, int64_t end, void* data);

namespace detail {

struct Loop {
  Part function;
  void* data;
  std::atomic<bool> failed = false;
  std::exception_ptr error;

  // No exception may escape into torch's C interface.
  static void run(int64_t begin, int64_t end, void* context) noexcept {
    auto* loop = static_cast<Loop*>(context);
    try {
      Callback call;
      loop->function(begin, end, loop->data);
      call.check();
    } catch (...) {
      if (!loop->failed.exchange(true)) {
        loop->error = std::current_exception();
      }
    }
  }
};

}  // namespace detail

// Calls function(b, e, data) for parts b:e of begin:end, each on a thread of its own. There is one part for each
// `grain` numbers or fraction thereof, but no more parts than threads. When all parts have ended, the first exception
// is rethrown.
inline void parallel_for(int64_t begin, int64_t end, int64_t grain, Part function, void* data) {
  if (!function) {
    stable::raise(stable::Kind::value, "the function to call must not be NULL");
  }
  if (grain < 0) {
    stable::raise(
        stable::Kind::value, "argument 'grain' must be 0 or the smallest number of iterations worth a thread, got ",
        grain);
  }
  detail::Loop loop{function, data};
  {
    const NoGil no_gil;  // if the caller kept the GIL, a part that takes it would deadlock
    INTEROP_CALL(torch_parallel_for, begin, end, grain, &detail::Loop::run, &loop);
  }
  if (loop.error) {
    std::rethrow_exception(loop.error);
  }
}

}  // namespace interop
