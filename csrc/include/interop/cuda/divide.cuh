// Division in kernels, by divisors that are known at launch.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace interop::cuda {

// A 32-bit division takes some 20 instructions on a GPU. This one takes a multiplication, an addition and a shift:
// Granlund and Montgomery, "Division by invariant integers using multiplication", 1994. For numbers below 2^31.
struct Divisor {
  uint32_t value, multiplier, shift;

  static Divisor of(uint32_t value) {
    uint32_t shift = 0;
    while ((uint64_t{1} << shift) < value) {
      ++shift;
    }
    const uint64_t multiplier = (uint64_t{1} << 32) * ((uint64_t{1} << shift) - value) / value + 1;
    return {value, static_cast<uint32_t>(multiplier), shift};
  }

  __device__ uint32_t quotient(uint32_t dividend) const {
    return (static_cast<uint32_t>((uint64_t{dividend} * multiplier) >> 32) + dividend) >> shift;
  }
};

// The same for offsets that need 64 bits. Plain, because they are rare.
struct WideDivisor {
  int64_t value;

  static WideDivisor of(int64_t value) {
    return {value};
  }
  __device__ int64_t quotient(int64_t dividend) const {
    return dividend / value;
  }
};

}  // namespace interop::cuda
