// Loops on torch's own threads, with a body written in Cython. torch's compiled loop runs them, so that the number of
// threads depends on no compiler flag.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

#include "ATen/Parallel.h"
#include "interop/callback.h"
#include "interop/gil.h"
#include "interop/loop_order.h"
#include "interop/stable/errors.h"

namespace interop {

using Part = void (*)(int64_t begin, int64_t end, void* data);

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
  std::atomic<bool> failed = false;
  std::exception_ptr error;
  {
    const NoGil no_gil;  // if the caller kept the GIL, a part that takes it would deadlock
    detail::LoopBody body([&](int64_t b, int64_t e) noexcept {  // nothing may be thrown into torch's C interface
      try {
        Callback call;
        function(b, e, data);
        call.check();
      } catch (...) {
        if (!failed.exchange(true)) {
          error = std::current_exception();
        }
      }
    });
    const auto run = [](int64_t b, int64_t e, void* context) { (*static_cast<decltype(body)*>(context))(b, e); };
    INTEROP_CALL(torch_parallel_for, begin, end, grain, run, &body);
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

}  // namespace interop
