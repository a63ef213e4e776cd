// What becomes of memory that is read-only: torch has no read-only tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <utility>

#include "copy.h"
#include "interop/bridges.h"

namespace interop::bridges {

// Raises ValueError where that was not asked for. `got` is what the message calls the memory.
inline void check_writable(bool read_only, OnReadonly on_readonly, const char* argument, const char* got) {
  TORCH_CHECK_VALUE(
      !read_only || on_readonly != OnReadonly::raise,
      "argument '",
      argument,
      "' must be writable, got ",
      got,
      ", and torch has no read-only tensors; pass on_readonly='copy', or on_readonly='share' if nothing will write to "
      "the "
      "tensor");
}

// The tensor over that memory, or a copy, whichever was asked for.
inline at::Tensor shared_or_copied(at::Tensor tensor, bool read_only, OnReadonly on_readonly) {
  return read_only && on_readonly == OnReadonly::copy ? contiguous_copy(tensor) : std::move(tensor);
}

}  // namespace interop::bridges
