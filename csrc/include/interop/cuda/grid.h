// How many threads a kernel gets, and what its launcher returns: what host and device have to agree on.
#pragma once

#include <cstdint>

namespace interop::cuda {

// Of a launcher that has no kernel for the element type; no cudaError_t is negative.
constexpr int unsupported_dtype = -1;

// Threads of a block where nothing speaks for another number.
constexpr int threads_per_block = 256;

// How many parts of `size` cover `count`.
constexpr int64_t parts(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

}  // namespace interop::cuda
