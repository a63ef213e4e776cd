// How many threads a kernel gets, and what its launcher returns: what host and device have to agree on.
#pragma once

#include <cstdint>

namespace interop::cuda {

// What a launcher returns beside cudaError_t, which is never negative: it has no kernel for the element type; it was
// given an operation without operands, or with another number of inputs than the functor takes.
constexpr int unsupported_dtype = -1;
constexpr int no_operands = -2;
constexpr int wrong_number_of_inputs = -3;

// Threads of a block where nothing speaks for another number.
constexpr int threads_per_block = 256;

// How many parts of `size` cover `count`.
constexpr int64_t parts(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

}  // namespace interop::cuda
