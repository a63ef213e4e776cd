# The LLTM cell as the operator torch.ops.lltm.cell, with its gradient: the algorithm of cell_cython.pyx, without
# torch.autograd.Function around it.
cimport ATen as at
from ATen cimport Tensor
from checks cimport given_or_zeros
from interop cimport check
from libcpp.vector cimport vector
from torch.autograd cimport Context
from torch.library cimport define, impl, register_autograd


cdef (Tensor, Tensor, Tensor, Tensor, Tensor) forward(
    const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& weight, const Tensor& bias
) except * nogil:
    """h', c', and what backward needs: [h, x], the three gates after their activations, and tanh(c')."""
    check(
        h.dim() == 2 and c.dim() == 2 and c.sym_size(0) == h.sym_size(0) and c.sym_size(1) == h.sym_size(1)
        and weight.sym_size(0) == 3 * h.sym_size(1),
        b"lltm::cell: h and c must have the shape (batch, state), and weight 3 * state rows; got h ", h.sym_sizes(),
        b", c ", c.sym_sizes(), b", weight ", weight.sym_sizes(),
    )
    cdef at.SymInt state = h.sym_size(1)
    cdef vector[Tensor] parts
    parts.push_back(h)
    parts.push_back(x)
    cdef Tensor joined = at.cat(parts, 1)
    cdef Tensor gates = at.addmm(bias, joined, weight.t())
    cdef Tensor io = gates.narrow_symint(1, 0, 2 * state), z = gates.narrow_symint(1, 2 * state, state)
    io.sigmoid_()
    at.elu_(z)
    cdef Tensor new_c = at.addcmul(c, z, gates.narrow_symint(1, 0, state))
    cdef Tensor tanh_c = at.tanh(new_c)
    return at.mul(tanh_c, gates.narrow_symint(1, state, state)), new_c, joined, gates, tanh_c


cdef void setup_context(
    Context& ctx,
    const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& weight, const Tensor& bias,
    const Tensor& new_h, const Tensor& new_c, const Tensor& joined, const Tensor& gates, const Tensor& tanh_c,
) except * nogil:
    ctx.mark_non_differentiable(joined)
    ctx.mark_non_differentiable(gates)
    ctx.mark_non_differentiable(tanh_c)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(joined, gates, tanh_c, weight)


cdef (Tensor, Tensor, Tensor, Tensor, Tensor) backward(
    Context& ctx,
    const Tensor& given_h, const Tensor& given_c, const Tensor& _1, const Tensor& _2, const Tensor& _3,
) except * nogil:
    """The gradients for x, h, c, weight and bias."""
    cdef Tensor joined = ctx.saved_tensor(0), gates = ctx.saved_tensor(1), tanh_c = ctx.saved_tensor(2)
    cdef Tensor weight = ctx.saved_tensor(3), d_x, d_h, d_weight, d_bias, d_joined
    cdef Tensor grad_h = given_or_zeros(given_h, tanh_c), grad_c = given_or_zeros(given_c, tanh_c)
    cdef at.SymInt state = tanh_c.sym_size(1)
    cdef Tensor i = gates.narrow_symint(1, 0, state), o = gates.narrow_symint(1, state, state)
    cdef Tensor z = gates.narrow_symint(1, 2 * state, state)
    cdef Tensor d_c = at.mul(grad_h, o)
    at.tanh_backward_out(d_c, d_c, tanh_c)
    d_c.add_(grad_c)
    # The gradients of the gates go straight into the parts of one matrix, so that each product below is one call.
    cdef Tensor d_gates = at.empty_like(gates)
    cdef Tensor d_i = d_gates.narrow_symint(1, 0, state), d_o = d_gates.narrow_symint(1, state, state)
    cdef Tensor d_z = d_gates.narrow_symint(1, 2 * state, state), d_io = d_gates.narrow_symint(1, 0, 2 * state)
    at.mul_out(d_i, d_c, z)
    at.mul_out(d_o, grad_h, tanh_c)
    at.mul_out(d_z, d_c, i)
    at.sigmoid_backward_out(d_io, d_io, gates.narrow_symint(1, 0, 2 * state))
    at.elu_backward_out(d_z, d_z, 1, 1, 1, True, z)
    if ctx.needs_input_grad(0) or ctx.needs_input_grad(1):
        d_joined = at.mm(d_gates, weight)
        d_h = d_joined.narrow_symint(1, 0, state)
        d_x = d_joined.narrow_symint(1, state, d_joined.sym_size(1) - state)
    if ctx.needs_input_grad(3):
        d_weight = at.mm(d_gates.t(), joined)
    if ctx.needs_input_grad(4):
        d_bias = at.sum(d_gates, (0,))
    return d_x, d_h, d_c, d_weight, d_bias


define("lltm::cell", "(Tensor x, Tensor h, Tensor c, Tensor weight, Tensor bias) -> "
                     "(Tensor, Tensor, Tensor, Tensor, Tensor)")
impl("lltm::cell", "CompositeExplicitAutograd", forward)
register_autograd("lltm::cell", backward, setup_context)
