// The buffer protocol on torch.Tensor itself.
#pragma once

namespace interop::bridges {

// Whether torch.Tensor and its subclasses export buffers now, and whether they shall. With the GIL. The latter returns
// 0, or -1 with an error set.
bool protocol_is_enabled() noexcept;
int enable_protocol(bool enable) noexcept;

}  // namespace interop::bridges
