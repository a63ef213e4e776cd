#include "target.h"

#include <torch/csrc/stable/c/shim.h>

uint64_t target_of_the_other_source() {
  return TORCH_FEATURE_VERSION;
}
