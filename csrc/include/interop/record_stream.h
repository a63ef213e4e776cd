// Tensor.record_stream with a stream of ours.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/record_stream_ops.h>
#include <c10/util/Exception.h>

#include "interop/stream.h"

namespace interop {

// The tensor's memory will not be given to another one before all is done that the stream was given until it is freed.
inline void record_stream(const at::TensorBase& tensor, const Stream& stream) {
  TORCH_CHECK_TYPE(tensor.defined(), "argument 'tensor' must be a tensor, got an undefined one (None)");
  at::Tensor recorded(tensor);
  at::_ops::record_stream::call(recorded, stream);
}

}  // namespace interop
