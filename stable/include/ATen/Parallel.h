// torch's threads.
#pragma once

#include <cstdint>

#include "interop/stable/shim.h"

namespace at {

inline int get_num_threads() {
  uint32_t count = 0;
  INTEROP_CALL(torch_get_num_threads, &count);
  return static_cast<int>(count);
}

inline int get_thread_num() {
  uint32_t index = 0;
  INTEROP_CALL(torch_get_thread_idx, &index);
  return static_cast<int>(index);
}

}  // namespace at
