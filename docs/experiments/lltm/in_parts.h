// Loops that run on torch's threads and use the widest vectors of the CPU.
#pragma once

#include <cstdint>

#include "interop/instruction_sets.h"
#include "interop/parallel.h"

namespace lltm {

// The minimum cost of a thread's part, which takes several times as long as starting the thread.
constexpr int64_t least_of_a_thread = 1 << 15;

template <class Body>
void in_parts(int64_t count, int64_t cost, const Body& body) {
  const auto part = [](int64_t begin, int64_t end, void* data) { (*static_cast<const Body*>(data))(begin, end); };
  interop::parallel_for(0, count, 1 + least_of_a_thread / (1 + cost), part, const_cast<Body*>(&body));
}

}  // namespace lltm

// A macro, because g++ must inline the function to compile it for each instruction set.
#define LLTM_IN_PARTS(function, count, cost, ...) \
  ::lltm::in_parts(                               \
      count, cost, [&](int64_t begin, int64_t end) { INTEROP_VECTORIZED(function, begin, end, __VA_ARGS__); })
