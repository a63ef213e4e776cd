// Loops over torch's own threads, with a body written in Cython.
//
// ATen/Parallel.h runs them on one thread in a source that is compiled without -fopenmp, and says nothing about it;
// interop.build compiles with it wherever torch's threads are OpenMP's.
#pragma once

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <type_traits>

#include "interop/callback.h"
#include "interop/gil.h"
#include "interop/graph.h"

namespace interop {

using Part = void (*)(int64_t begin, int64_t end, void* data);

namespace detail {

inline void check_function(bool given) {
  TORCH_CHECK_VALUE(given, "the function to call must not be NULL");
}

inline void check_grain(int64_t grain) {
  TORCH_CHECK_VALUE(
      grain >= 0, "argument 'grain' must be 0 or the least number of iterations worth a thread, got ", grain);
}

// Calls a function of Cython's, on whatever thread this is, and throws what it raised.
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

}  // namespace detail

// Calls function(b, e, data) for parts b:e of begin:end, each part on a thread of its own: one part for each `grain`
// numbers begun, but no more than there are threads. What the first of them raises is thrown here, when all have ended.
inline void parallel_for(int64_t begin, int64_t end, int64_t grain, Part function, void* data) {
  detail::check_function(function);
  detail::check_grain(grain);
  const bool below = !records_graph();
  const NoGil no_gil;  // a part that takes the GIL would wait for the caller, who waits for it
  at::parallel_for(begin, end, grain, [=](int64_t b, int64_t e) {
    const BelowAutograd mode(below);
    detail::call_cython(function, b, e, data);
  });
}

// What combine() makes of the results of function(b, e, identity, data) for all parts, in their order.
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
  const bool below = !records_graph();
  const NoGil no_gil;
  return at::parallel_reduce(
      begin, end, grain, identity,
      [=](int64_t b, int64_t e, T start) {
        const BelowAutograd mode(below);
        return detail::call_cython(function, b, e, start, data);
      },
      [=](T x, T y) { return detail::call_cython(combine, x, y); });
}

}  // namespace interop
