// The LLTM cell's forward and backward in C++, bound with pybind11: the baseline, line for line the algorithm of
// cell_cython.pyx. It includes what it needs: torch/extension.h would double the time to compile it.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/utils/pybind.h>

#include <array>
#include <cstdint>
#include <vector>

using at::Tensor;

// Without this check a c that can be broadcast would give numbers, and so would columns traded between h and x.
void check_state(const Tensor& h, const Tensor& c, const Tensor& weight) {
  TORCH_CHECK(
      h.dim() == 2 && c.sizes() == h.sizes() && weight.size(0) == 3 * h.size(1),
      "h and c must have the shape (batch, state), and weight 3 * state rows; got h ", h.sizes(), ", c ", c.sizes(),
      ", weight ", weight.sizes());
}

// Returns h', c', and what backward needs: [h, x], the three gates after their activations, and tanh(c').
std::array<Tensor, 5> forward(
    const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& weight, const Tensor& bias) {
  at::NoGradGuard no_grad;
  check_state(h, c, weight);
  const int64_t state = h.size(1);
  Tensor joined = at::cat({h, x}, 1);
  Tensor gates = at::addmm(bias, joined, weight.t());
  gates.narrow(1, 0, 2 * state).sigmoid_();
  Tensor i = gates.narrow(1, 0, state);
  Tensor o = gates.narrow(1, state, state);
  Tensor z = gates.narrow(1, 2 * state, state);
  at::elu_(z);
  Tensor new_c = at::addcmul(c, z, i);
  Tensor tanh_c = at::tanh(new_c);
  Tensor new_h = at::mul(tanh_c, o);
  return {new_h, new_c, joined, gates, tanh_c};
}

// Returns the gradients for x, h, c, weight and bias; an undefined tensor, None in Python, where none is needed.
std::array<Tensor, 5> backward(
    const Tensor& grad_h,
    const Tensor& grad_c,
    const Tensor& joined,
    const Tensor& gates,
    const Tensor& tanh_c,
    const Tensor& weight,
    const std::array<bool, 5>& needs) {
  at::NoGradGuard no_grad;
  const int64_t state = tanh_c.size(1);
  Tensor d_x, d_h, d_c, d_weight, d_bias;
  Tensor i = gates.narrow(1, 0, state);
  Tensor o = gates.narrow(1, state, state);
  Tensor z = gates.narrow(1, 2 * state, state);

  d_c = at::mul(grad_h, o);
  at::tanh_backward_out(d_c, d_c, tanh_c);
  d_c.add_(grad_c);
  if (needs[0] || needs[1] || needs[3] || needs[4]) {
    // The gradients of the gates go straight into the parts of one matrix, so that each product below is one call.
    Tensor d_gates = at::empty_like(gates);
    Tensor d_i = d_gates.narrow(1, 0, state);
    Tensor d_o = d_gates.narrow(1, state, state);
    Tensor d_z = d_gates.narrow(1, 2 * state, state);
    Tensor d_io = d_gates.narrow(1, 0, 2 * state);
    at::mul_out(d_i, d_c, z);
    at::mul_out(d_o, grad_h, tanh_c);
    at::mul_out(d_z, d_c, i);
    at::sigmoid_backward_out(d_io, d_io, gates.narrow(1, 0, 2 * state));
    at::elu_backward_out(d_z, d_z, 1, 1, 1, /*is_result=*/true, z);
    if (needs[0] || needs[1]) {
      Tensor d_joined = at::mm(d_gates, weight);
      d_h = d_joined.narrow(1, 0, state);
      d_x = d_joined.narrow(1, state, d_joined.size(1) - state);
    }
    if (needs[3]) {
      d_weight = at::mm(d_gates.t(), joined);
    }
    if (needs[4]) {
      d_bias = at::sum(d_gates, {0}, false);
    }
  }
  return {d_x, d_h, d_c, d_weight, d_bias};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "The LLTM cell's forward and backward in C++.";
  m.def("forward", &forward, py::call_guard<py::gil_scoped_release>());
  m.def("backward", &backward, py::call_guard<py::gil_scoped_release>());
}
