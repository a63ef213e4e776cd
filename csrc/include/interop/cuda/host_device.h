// The interface between the host and a .cu file, without torch's types and CUDA's headers: the arguments of an
// elementwise operation, the results of launchers, and the number of threads of a kernel.
#pragma once

#include <cstdint>

namespace interop::cuda {

struct ElementwiseArguments {
  static constexpr int max_dims = 16;
  static constexpr int max_operands = 6;

  int64_t count;                            // elements of the result
  int32_t operands;                         // the output, which comes first, and the inputs
  int32_t dims;                             // as few as possible: dimensions are joined if the strides allow it
  int8_t dtype;                             // the c10::ScalarType of all operands
  bool contiguous;                          // one dimension, and stride 1 in each operand
  bool fits_32_bit;                         // every offset in elements does
  int64_t sizes[max_dims];                  // the innermost dimension comes first
  int64_t strides[max_operands][max_dims];  // in elements
  void* data[max_operands];
};

// A launcher's results beside cudaError_t, which is never negative: it has no kernel for the element type, or its
// operation has no operands, or another number of inputs than the functor takes.
constexpr int unsupported_dtype = -1;
constexpr int no_operands = -2;
constexpr int wrong_number_of_inputs = -3;

// The default number of threads of a block.
constexpr int threads_per_block = 256;

// The number of parts of `size` that cover `count`.
constexpr int64_t parts(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

}  // namespace interop::cuda
