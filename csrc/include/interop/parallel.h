// Loops on torch's own threads, with a body written in Cython.
//
// at::parallel_for() is a template. In a source that is compiled without -fopenmp, it silently runs on one thread;
// clang's -fopenmp would bring threads of its own. So the functions here call the loop that is compiled into torch.
#pragma once

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <torch/csrc/stable/c/shim.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "interop/callback.h"
#include "interop/gil.h"
#include "interop/graph.h"
#include "interop/loop_order.h"

namespace interop {

using Part = void (*)(int64_t begin, int64_t end, void* data);

namespace detail {

inline void check_function(bool given) {
  TORCH_CHECK_VALUE(given, "the function to call must not be NULL");
}

inline void check_grain(int64_t grain) {
  TORCH_CHECK_VALUE(
      grain >= 0, "argument 'grain' must be 0 or the smallest number of iterations worth a thread, got ", grain);
}

// Calls a function written in Cython, on any thread, and throws the error that it raised.
template <class F, class... Arguments>
auto call_cython(F* function, Arguments... arguments) {
  Callback call;
  if constexpr (std::is_void_v<decltype(function(arguments...))>) {
    function(arguments...);
    call.check();
  } else {
    auto result = function(arguments...);
    call.check();
    return result;
  }
}

// Calls f(b, e) for parts b:e of begin:end on torch's threads, without the GIL. Otherwise a part that takes the GIL
// would wait for the caller, which waits for the part. After all parts have ended, throws the first error.
template <class F>
void for_parts(int64_t begin, int64_t end, int64_t grain, const F& f) {
  const bool below = !records_graph();
  std::once_flag failed;
  std::exception_ptr error;
  {
    const NoGil no_gil;
    LoopBody body([&](int64_t b, int64_t e) noexcept {  // nothing may be thrown into torch's C interface
      try {
        const BelowAutograd mode(below);
        f(b, e);
      } catch (...) {
        std::call_once(failed, [&] { error = std::current_exception(); });
      }
    });
    const auto run = [](int64_t b, int64_t e, void* context) { (*static_cast<decltype(body)*>(context))(b, e); };
    TORCH_CHECK(
        torch_parallel_for(begin, end, grain, run, &body) == 0,
        "torch could not start its threads, and has written the reason to stderr");
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

}  // namespace detail

// Calls function(b, e, data) for parts b:e of begin:end, each part on its own thread. There is one part for each
// `grain` numbers, rounded up, but no more parts than threads. After all have ended, throws the first error.
inline void parallel_for(int64_t begin, int64_t end, int64_t grain, Part function, void* data) {
  detail::check_function(function);
  detail::check_grain(grain);
  detail::for_parts(begin, end, grain, [=](int64_t b, int64_t e) { detail::call_cython(function, b, e, data); });
}

// Combines the results of function(b, e, identity, data) for all parts, in order, with combine().
template <class T>
T parallel_reduce(
    int64_t begin,
    int64_t end,
    int64_t grain,
    T identity,
    T (*function)(int64_t, int64_t, T, void*),
    T (*combine)(T, T),
    void* data) {
  detail::check_function(function && combine);
  detail::check_grain(grain);
  std::mutex mutex;
  std::vector<std::pair<int64_t, T>> results;  // with the first index of each part
  detail::for_parts(begin, end, grain, [&](int64_t b, int64_t e) {
    const T result = detail::call_cython(function, b, e, identity, data);
    const std::lock_guard lock(mutex);
    results.emplace_back(b, result);
  });
  std::sort(results.begin(), results.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  if (results.size() == 1) {
    return results.front().second;
  }
  T result = identity;
  for (const auto& part : results) {
    result = detail::call_cython(combine, result, part.second);
  }
  return result;
}

}  // namespace interop
