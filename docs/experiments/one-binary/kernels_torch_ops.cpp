// The kernels as operators, with nothing but torch's stable C++ interface: torch.ops.one_binary.numel and so on.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <array>
#include <optional>
#include <tuple>

#include "loops.h"

#ifndef STABLE_TORCH_ERROR_CODE_CHECK  // before torch 2.13
#define STABLE_TORCH_ERROR_CODE_CHECK TORCH_ERROR_CODE_CHECK
#endif

namespace {

using torch::stable::Tensor;
using torch::stable::detail::from;
using torch::stable::detail::to;

int64_t numel(Tensor x) {
  return x.numel();
}

Tensor relu(Tensor x) {
  std::array<StableIValue, 1> stack{from(x)};
  STABLE_TORCH_ERROR_CODE_CHECK(torch_call_dispatcher("aten::relu", "", stack.data(), TORCH_ABI_VERSION));
  return to<Tensor>(stack[0]);
}

Tensor linear(Tensor x, Tensor weight, Tensor bias) {
  std::array<StableIValue, 3> stack{from(x), from(weight), from(std::optional<Tensor>(bias))};
  STABLE_TORCH_ERROR_CODE_CHECK(torch_call_dispatcher("aten::linear", "", stack.data(), TORCH_ABI_VERSION));
  return to<Tensor>(stack[0]);
}

Tensor segment_sum(Tensor values, Tensor offsets) {
  const Tensor v = torch::stable::contiguous(values), o = torch::stable::contiguous(offsets);
  STD_TORCH_CHECK(v.dim() == 2 && o.dim() == 1, "values must have 2 dimensions, and offsets 1");
  const int64_t segments = o.size(0) - 1, width = v.size(1);
  STD_TORCH_CHECK(
      loops::are_offsets(o.const_data_ptr<int64_t>(), segments, v.size(0)),
      "offsets must rise from 0 to the number of rows");
  Tensor sums = torch::stable::new_empty(v, {segments, width});
  loops::sum_segments(
      v.const_data_ptr<float>(), o.const_data_ptr<int64_t>(), segments, width, sums.mutable_data_ptr<float>());
  return sums;
}

std::tuple<Tensor, Tensor, Tensor> forward(Tensor gates, Tensor c) {
  const Tensor g = torch::stable::contiguous(gates), old = torch::stable::contiguous(c);
  STD_TORCH_CHECK(
      g.dim() == 2 && old.dim() == 2 && g.size(0) == old.size(0) && g.size(1) == 3 * old.size(1),
      "gates must have the sizes (batch, 3 * state), and c (batch, state)");
  const int64_t batch = old.size(0), state = old.size(1);
  Tensor new_h = torch::stable::new_empty(old, {batch, state}), new_c = torch::stable::new_empty(old, {batch, state});
  Tensor activated = torch::stable::new_empty(old, {batch, 3 * state});
  loops::forward_rows(
      batch, state, g.const_data_ptr<float>(), old.const_data_ptr<float>(), activated.mutable_data_ptr<float>(),
      new_h.mutable_data_ptr<float>(), new_c.mutable_data_ptr<float>());
  return {new_h, new_c, activated};
}

std::tuple<Tensor, Tensor> backward(Tensor grad_h, Tensor grad_c, Tensor activated, Tensor new_c) {
  const Tensor of_h = torch::stable::contiguous(grad_h), of_c = torch::stable::contiguous(grad_c);
  const Tensor a = torch::stable::contiguous(activated), after = torch::stable::contiguous(new_c);
  STD_TORCH_CHECK(
      a.dim() == 2 && after.dim() == 2 && a.size(0) == after.size(0) && a.size(1) == 3 * after.size(1),
      "activated must have the sizes (batch, 3 * state), and new_c (batch, state)");
  STD_TORCH_CHECK(
      of_h.numel() == after.numel() && of_c.numel() == after.numel(), "grad_h and grad_c must have the sizes of new_c");
  const int64_t batch = after.size(0), state = after.size(1);
  Tensor d_gates = torch::stable::new_empty(after, {batch, 3 * state});
  Tensor d_c = torch::stable::new_empty(after, {batch, state});
  loops::backward_rows(
      batch, state, of_h.const_data_ptr<float>(), of_c.const_data_ptr<float>(), a.const_data_ptr<float>(),
      after.const_data_ptr<float>(), d_gates.mutable_data_ptr<float>(), d_c.mutable_data_ptr<float>());
  return {d_gates, d_c};
}

}  // namespace

STABLE_TORCH_LIBRARY(one_binary, library) {
  library.def("numel(Tensor x) -> int");
  library.def("relu(Tensor x) -> Tensor");
  library.def("linear(Tensor x, Tensor weight, Tensor bias) -> Tensor");
  library.def("segment_sum(Tensor values, Tensor offsets) -> Tensor");
  library.def("forward(Tensor gates, Tensor c) -> (Tensor, Tensor, Tensor)");
  library.def("backward(Tensor grad_h, Tensor grad_c, Tensor activated, Tensor new_c) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(one_binary, CPU, library) {
  library.impl("numel", TORCH_BOX(&numel));
  library.impl("relu", TORCH_BOX(&relu));
  library.impl("linear", TORCH_BOX(&linear));
  library.impl("segment_sum", TORCH_BOX(&segment_sum));
  library.impl("forward", TORCH_BOX(&forward));
  library.impl("backward", TORCH_BOX(&backward));
}
