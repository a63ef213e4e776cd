// Loops over torch's own threads, with a body written in Cython. They are torch's compiled ones, so that no flag of the
// compiler decides how many threads there are.
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

  // Nothing may be thrown into torch's C interface.
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

// Calls function(b, e, data) for parts b:e of begin:end, each part on a thread of its own: one part for each `grain`
// numbers begun, but no more than there are threads. What the first of them raises is thrown here, when all have ended.
inline void parallel_for(int64_t begin, int64_t end, int64_t grain, Part function, void* data) {
  if (!function) {
    stable::raise(stable::Kind::value, "the function to call must not be NULL");
  }
  if (grain < 0) {
    stable::raise(
        stable::Kind::value, "argument 'grain' must be 0 or the least number of iterations worth a thread, got ",
        grain);
  }
  detail::Loop loop{function, data};
  {
    const NoGil no_gil;  // a part that takes the GIL would wait for the caller, who waits for it
    INTEROP_CALL(torch_parallel_for, begin, end, grain, &detail::Loop::run, &loop);
  }
  if (loop.error) {
    std::rethrow_exception(loop.error);
  }
}

}  // namespace interop
