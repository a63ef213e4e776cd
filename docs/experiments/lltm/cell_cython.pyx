# The LLTM cell's forward and backward in Cython, with ATen called without the GIL: line for line the algorithm of
# cell_cpp.cpp.
cimport torch
cimport ATen as at
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector


cdef int check_state(const at.Tensor& h, const at.Tensor& c, const at.Tensor& weight) except -1:
    """Without this check a c that can be broadcast would give numbers, and so would columns traded between h and x."""
    if h.dim() != 2 or not c.sizes().equals(h.sizes()) or weight.size(0) != 3 * h.size(1):
        raise RuntimeError(
            "h and c must have the shape (batch, state), and weight 3 * state rows; "
            f"got h {h.sizes().vec()}, c {c.sizes().vec()}, weight {weight.sizes().vec()}"
        )
    return 0


def forward(
    torch.Tensor x not None,
    torch.Tensor h not None,
    torch.Tensor c not None,
    torch.Tensor weight not None,
    torch.Tensor bias not None,
):
    """Return h', c', and what backward needs: [h, x], the three gates after their activations, and tanh(c')."""
    cdef torch.NoGradGuard _no_grad = torch.NoGradGuard()
    cdef at.Tensor joined, gates, i, o, z, io, new_h, new_c, tanh_c
    # Filled under the GIL: a second C++ reference to a tensor increfs its Python object.
    cdef vector[at.Tensor] parts
    parts.push_back(h.cdata)
    parts.push_back(x.cdata)
    check_state(h.cdata, c.cdata, weight.cdata)
    cdef int64_t state = h.cdata.size(1)
    with nogil:
        joined = at.cat(parts, 1)
        gates = at.addmm(bias.cdata, joined, weight.cdata.t())
        io = gates.narrow(1, 0, 2 * state)
        io.sigmoid_()
        i = gates.narrow(1, 0, state)
        o = gates.narrow(1, state, state)
        z = gates.narrow(1, 2 * state, state)
        at.elu_(z)
        new_c = at.addcmul(c.cdata, z, i)
        tanh_c = at.tanh(new_c)
        new_h = at.mul(tanh_c, o)
    return torch.wrap(new_h), torch.wrap(new_c), torch.wrap(joined), torch.wrap(gates), torch.wrap(tanh_c)


def backward(
    torch.Tensor grad_h not None,
    torch.Tensor grad_c not None,
    torch.Tensor joined not None,
    torch.Tensor gates not None,
    torch.Tensor tanh_c not None,
    torch.Tensor weight not None,
    tuple needs not None,
):
    """Return the gradients for x, h, c, weight and bias, None for those that `needs` has false."""
    cdef torch.NoGradGuard _no_grad = torch.NoGradGuard()
    cdef at.Tensor d_x, d_h, d_c, d_weight, d_bias, d_joined, d_gates, d_i, d_o, d_z, d_io
    cdef at.Tensor i, o, z, io
    cdef cbool need_x, need_h, need_weight, need_bias
    need_x, need_h, _, need_weight, need_bias = needs
    cdef vector[int64_t] batch = (0,)
    cdef int64_t state = tanh_c.cdata.size(1)
    with nogil:
        i = gates.cdata.narrow(1, 0, state)
        o = gates.cdata.narrow(1, state, state)
        z = gates.cdata.narrow(1, 2 * state, state)

        d_c = at.mul(grad_h.cdata, o)
        at.tanh_backward_out(d_c, d_c, tanh_c.cdata)
        d_c.add_(grad_c.cdata)
        if need_x or need_h or need_weight or need_bias:
            # The gradients of the gates go straight into the parts of one matrix, so that each product below is one
            # call.
            d_gates = at.empty_like(gates.cdata)
            d_i = d_gates.narrow(1, 0, state)
            d_o = d_gates.narrow(1, state, state)
            d_z = d_gates.narrow(1, 2 * state, state)
            d_io = d_gates.narrow(1, 0, 2 * state)
            io = gates.cdata.narrow(1, 0, 2 * state)
            at.mul_out(d_i, d_c, z)
            at.mul_out(d_o, grad_h.cdata, tanh_c.cdata)
            at.mul_out(d_z, d_c, i)
            at.sigmoid_backward_out(d_io, d_io, io)
            at.elu_backward_out(d_z, d_z, 1, 1, 1, True, z)
            if need_x or need_h:
                d_joined = at.mm(d_gates, weight.cdata)
                d_h = d_joined.narrow(1, 0, state)
                d_x = d_joined.narrow(1, state, d_joined.size(1) - state)
            if need_weight:
                d_weight = at.mm(d_gates.t(), joined.cdata)
            if need_bias:
                d_bias = at.sum(d_gates, batch)
    return torch.wrap(d_x), torch.wrap(d_h), torch.wrap(d_c), torch.wrap(d_weight), torch.wrap(d_bias)
