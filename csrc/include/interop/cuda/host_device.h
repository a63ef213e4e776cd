// What the host and a .cu file have to agree on, with no type of torch and no header of CUDA: what an elementwise
// operation hands over, what launchers return, and how many threads a kernel gets.
#pragma once

#include <cstdint>

namespace interop::cuda {

struct ElementwiseArguments {
  static constexpr int max_dims = 16;
  static constexpr int max_operands = 6;

  int64_t count;                            // elements of the result
  int32_t operands;                         // the output, which comes first, and the inputs
  int32_t dims;                             // as few as possible: what can be looped over as one dimension is one
  int8_t dtype;                             // of all operands: a c10::ScalarType
  bool contiguous;                          // one dimension, and stride 1 in each operand
  bool fits_32_bit;                         // no offset, in elements, needs more
  int64_t sizes[max_dims];                  // the innermost dimension comes first
  int64_t strides[max_operands][max_dims];  // in elements
  void* data[max_operands];
};

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
