# The kernels in Cython. setup.py compiles this one file with each backend.
# cython: cdivision=True
cimport ATen as at
cimport torch
from libc.math cimport expf, expm1f, tanhf
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool


def numel(torch.Tensor x not None):
    return x.cdata.numel()


def relu(torch.Tensor x not None):
    return torch.wrap(at.relu(x.cdata))


def linear(torch.Tensor x not None, torch.Tensor weight not None, torch.Tensor bias not None):
    return torch.wrap(at.linear(x.cdata, weight.cdata, bias.cdata))


cdef cbool are_offsets(const int64_t* offsets, int64_t segments, int64_t rows) noexcept nogil:
    """Whether they begin with 0, end with the number of rows, and do not fall."""
    cdef int64_t k
    for k in range(segments):
        if offsets[k] > offsets[k + 1]:
            return False
    return segments >= 0 and offsets[0] == 0 and offsets[segments] == rows


cdef void sum_segments(
    const float* values, const int64_t* offsets, int64_t segments, int64_t width, float* sums
) noexcept nogil:
    cdef int64_t segment, row, column
    for segment in range(segments):
        for column in range(width):
            sums[segment * width + column] = 0
        for row in range(offsets[segment], offsets[segment + 1]):
            for column in range(width):
                sums[segment * width + column] += values[row * width + column]


def segment_sum(torch.Tensor values not None, torch.Tensor offsets not None):
    """The sums of the rows of `values` from each offset to the next, a row for each."""
    cdef at.Tensor v = values.cdata.contiguous(), o = offsets.cdata.contiguous()
    if v.dim() != 2 or o.dim() != 1:
        raise ValueError("values must have 2 dimensions, and offsets 1")
    cdef int64_t segments = o.size(0) - 1, width = v.size(1)
    if not are_offsets(o.const_data_ptr[int64_t](), segments, v.size(0)):
        raise ValueError("offsets must rise from 0 to the number of rows")
    cdef at.Tensor sums = at.empty((segments, width), v.options())
    sum_segments(
        v.const_data_ptr[float](), o.const_data_ptr[int64_t](), segments, width, sums.mutable_data_ptr[float]())
    return torch.wrap(sums)


cdef float sigmoid(float x) noexcept nogil:
    cdef float one = 1  # with the literal, Cython writes an expression of doubles
    return one / (one + expf(-x))


cdef void forward_rows(
    int64_t batch, int64_t state, const float* gates, const float* c, float* activated, float* new_h, float* new_c
) noexcept nogil:
    cdef int64_t _row, k
    cdef float i, o, z, s
    for _row in range(batch):
        for k in range(state):
            i = sigmoid(gates[k])
            o = sigmoid(gates[state + k])
            z = gates[2 * state + k]
            z = z if z > 0 else expm1f(z)
            s = c[k] + z * i
            activated[k] = i
            activated[state + k] = o
            activated[2 * state + k] = z
            new_c[k] = s
            new_h[k] = tanhf(s) * o
        gates += 3 * state
        activated += 3 * state
        c += state
        new_h += state
        new_c += state


def forward(torch.Tensor gates not None, torch.Tensor c not None):
    """Return h', c', and the gates after their activations."""
    cdef at.Tensor g = gates.cdata.contiguous(), old = c.cdata.contiguous()
    if g.dim() != 2 or old.dim() != 2 or g.size(0) != old.size(0) or g.size(1) != 3 * old.size(1):
        raise ValueError("gates must have the sizes (batch, 3 * state), and c (batch, state)")
    cdef int64_t batch = old.size(0), state = old.size(1)
    cdef at.Tensor new_h = at.empty((batch, state), old.options()), new_c = at.empty((batch, state), old.options())
    cdef at.Tensor activated = at.empty((batch, 3 * state), old.options())
    forward_rows(
        batch, state, g.const_data_ptr[float](), old.const_data_ptr[float](), activated.mutable_data_ptr[float](),
        new_h.mutable_data_ptr[float](), new_c.mutable_data_ptr[float]())
    return torch.wrap(new_h), torch.wrap(new_c), torch.wrap(activated)


cdef void backward_rows(
    int64_t batch, int64_t state, const float* grad_h, const float* grad_c, const float* activated,
    const float* new_c, float* d_gates, float* d_c
) noexcept nogil:
    cdef int64_t _row, k
    cdef float i, o, z, t, d, one = 1
    for _row in range(batch):
        for k in range(state):
            i = activated[k]
            o = activated[state + k]
            z = activated[2 * state + k]
            t = tanhf(new_c[k])
            d = grad_c[k] + grad_h[k] * o * (one - t * t)
            d_gates[k] = d * z * (one - i) * i
            d_gates[state + k] = grad_h[k] * t * (one - o) * o
            d_gates[2 * state + k] = d * i * (one if z > 0 else z + one)
            d_c[k] = d
        activated += 3 * state
        d_gates += 3 * state
        grad_h += state
        grad_c += state
        new_c += state
        d_c += state


def backward(
    torch.Tensor grad_h not None, torch.Tensor grad_c not None, torch.Tensor activated not None,
    torch.Tensor new_c not None,
):
    """Return the gradients for the gates before their activations, and for c."""
    cdef at.Tensor of_h = grad_h.cdata.contiguous(), of_c = grad_c.cdata.contiguous()
    cdef at.Tensor a = activated.cdata.contiguous(), new = new_c.cdata.contiguous()
    if a.dim() != 2 or new.dim() != 2 or a.size(0) != new.size(0) or a.size(1) != 3 * new.size(1):
        raise ValueError("activated must have the sizes (batch, 3 * state), and new_c (batch, state)")
    cdef int64_t batch = new.size(0), state = new.size(1)
    if of_h.numel() != new.numel() or of_c.numel() != new.numel():
        raise ValueError("grad_h and grad_c must have the sizes of new_c")
    cdef at.Tensor d_gates = at.empty((batch, 3 * state), new.options()), d_c = at.empty((batch, state), new.options())
    backward_rows(
        batch, state, of_h.const_data_ptr[float](), of_c.const_data_ptr[float](), a.const_data_ptr[float](),
        new.const_data_ptr[float](), d_gates.mutable_data_ptr[float](), d_c.mutable_data_ptr[float]())
    return torch.wrap(d_gates), torch.wrap(d_c)
