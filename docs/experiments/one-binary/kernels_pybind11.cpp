// The kernels as pybind11 binds them, with the caster for tensors that torch has, over the fewest headers that do.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <torch/csrc/utils/pybind.h>

#include <stdexcept>
#include <tuple>

#include "loops.h"

namespace {

using at::Tensor;

Tensor segment_sum(const Tensor& values, const Tensor& offsets) {
  const Tensor v = values.contiguous(), o = offsets.contiguous();
  if (v.dim() != 2 || o.dim() != 1) {
    throw std::invalid_argument("values must have 2 dimensions, and offsets 1");
  }
  const int64_t segments = o.size(0) - 1, width = v.size(1);
  if (!loops::are_offsets(o.const_data_ptr<int64_t>(), segments, v.size(0))) {
    throw std::invalid_argument("offsets must rise from 0 to the number of rows");
  }
  Tensor sums = at::empty({segments, width}, v.options());
  loops::sum_segments(
      v.const_data_ptr<float>(), o.const_data_ptr<int64_t>(), segments, width, sums.mutable_data_ptr<float>());
  return sums;
}

std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& gates, const Tensor& c) {
  const Tensor g = gates.contiguous(), old = c.contiguous();
  if (g.dim() != 2 || old.dim() != 2 || g.size(0) != old.size(0) || g.size(1) != 3 * old.size(1)) {
    throw std::invalid_argument("gates must have the sizes (batch, 3 * state), and c (batch, state)");
  }
  const int64_t batch = old.size(0), state = old.size(1);
  Tensor new_h = at::empty({batch, state}, old.options()), new_c = at::empty({batch, state}, old.options());
  Tensor activated = at::empty({batch, 3 * state}, old.options());
  loops::forward_rows(
      batch, state, g.const_data_ptr<float>(), old.const_data_ptr<float>(), activated.mutable_data_ptr<float>(),
      new_h.mutable_data_ptr<float>(), new_c.mutable_data_ptr<float>());
  return {new_h, new_c, activated};
}

std::tuple<Tensor, Tensor> backward(
    const Tensor& grad_h, const Tensor& grad_c, const Tensor& activated, const Tensor& new_c) {
  const Tensor of_h = grad_h.contiguous(), of_c = grad_c.contiguous();
  const Tensor a = activated.contiguous(), after = new_c.contiguous();
  if (a.dim() != 2 || after.dim() != 2 || a.size(0) != after.size(0) || a.size(1) != 3 * after.size(1)) {
    throw std::invalid_argument("activated must have the sizes (batch, 3 * state), and new_c (batch, state)");
  }
  if (of_h.numel() != after.numel() || of_c.numel() != after.numel()) {
    throw std::invalid_argument("grad_h and grad_c must have the sizes of new_c");
  }
  const int64_t batch = after.size(0), state = after.size(1);
  Tensor d_gates = at::empty({batch, 3 * state}, after.options()), d_c = at::empty({batch, state}, after.options());
  loops::backward_rows(
      batch, state, of_h.const_data_ptr<float>(), of_c.const_data_ptr<float>(), a.const_data_ptr<float>(),
      after.const_data_ptr<float>(), d_gates.mutable_data_ptr<float>(), d_c.mutable_data_ptr<float>());
  return {d_gates, d_c};
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("numel", [](const Tensor& x) { return x.numel(); });
  m.def("relu", [](const Tensor& x) { return at::relu(x); });
  m.def(
      "linear", [](const Tensor& x, const Tensor& weight, const Tensor& bias) { return at::linear(x, weight, bias); });
  m.def("segment_sum", segment_sum);
  m.def("forward", forward);
  m.def("backward", backward);
}
