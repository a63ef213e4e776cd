// What an elementwise operation hands from the host to a .cu file: pointers, sizes and strides, and no type of torch.
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

}  // namespace interop::cuda
