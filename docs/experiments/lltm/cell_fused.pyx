# The LLTM cell in Cython, fused: the elementwise work is one pass over memory, forward and backward, and the products
# of a small batch read the weights where they lie.
cimport ATen as at
from c10.util.BFloat16 cimport BFloat16
from checks cimport check_backward, check_forward, given_or_zeros
from in_parts cimport in_parts
from interop cimport accessor1, accessor2, const_accessor1, const_accessor2, get0, get1, get2, get3, get4, tuple5
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector
from rows cimport backward_rows, copy_row, element, forward_rows, join_rows, number, sum_rows
from small_product cimport product, product_pays, transpose
from torch.autograd cimport Context
from torch.library cimport Operator, define, impl, register_autograd

ctypedef tuple5[at.Tensor, at.Tensor, at.Tensor, at.Tensor, at.Tensor] Results

# One element of the loops over gates costs as much as copying this number of elements.
cdef enum:
    LOOP_COST = 8

cdef Operator[Results] backward_operator = Operator[Results](b"lltm::fused_backward")


# ---- From tensors to pointers. Accessors check that each tensor is what its pointer is taken for, and hold its memory.
# `kind` is NULL: by its type Cython knows which function is meant.

cdef inline int read(const at.Tensor& tensor, const char* name, const_accessor2[element]& rows) except -1 nogil:
    """Rows of the tensor, wherever they lie; of a copy if the elements of a row do not lie next to one another."""
    if tensor.size(1) <= 1 or tensor.stride(1) == 1:
        rows = const_accessor2[element](tensor, name)
    else:
        rows = const_accessor2[element](tensor.contiguous(), name)
    return 0


cdef int join_into(
    const element* kind, const at.Tensor& h, const at.Tensor& x, const at.Tensor& joined
) except -1 nogil:
    """[h, x], without the list that at::cat wants: a reference taken to a tensor of Python takes the GIL."""
    cdef const_accessor2[element] left, right
    cdef accessor2[element] to = accessor2[element](joined, b"joined")
    read[element](h, b"h", left)
    read[element](x, b"x", right)
    in_parts(
        join_rows[element], to.size(0), to.size(1), left.data(), left.size(1), left.stride(0), right.data(),
        right.size(1), right.stride(0), to.data())
    return 0


cdef int forward_into(
    const element* kind, const at.Tensor& c, const at.Tensor& gates, const at.Tensor& new_h, const at.Tensor& new_c
) except -1 nogil:
    cdef const_accessor2[element] old
    cdef accessor2[element] g = accessor2[element](gates, b"gates")
    cdef accessor2[element] to_h = accessor2[element](new_h, b"new_h")
    cdef accessor2[element] to_c = accessor2[element](new_c, b"new_c")
    read[element](c, b"c", old)
    in_parts(
        forward_rows[element], old.size(0), LOOP_COST * old.size(1), old.size(1), g.data(), old.data(), old.stride(0),
        to_h.data(), to_c.data())
    return 0


cdef int backward_into(
    const element* kind,
    const at.Tensor& grad_h,
    const at.Tensor& grad_c,
    const at.Tensor& gates,
    const at.Tensor& new_c,
    const at.Tensor& d_gates,
    const at.Tensor& d_c,
) except -1 nogil:
    cdef const_accessor2[element] from_h, from_c, g, c
    cdef accessor2[element] to_gates = accessor2[element](d_gates, b"d_gates")
    cdef accessor2[element] to_c = accessor2[element](d_c, b"d_c")
    read[element](grad_h, b"grad_h", from_h)
    read[element](grad_c, b"grad_c", from_c)
    read[element](gates, b"gates", g)
    read[element](new_c, b"new_c", c)
    in_parts(
        backward_rows[element], c.size(0), LOOP_COST * c.size(1), c.size(1), from_h.data(), from_h.stride(0),
        from_c.data(), from_c.stride(0), g.data(), g.stride(0), c.data(), c.stride(0), to_gates.data(), to_c.data())
    return 0


cdef int small_gates(
    const number* kind,
    const at.Tensor& x,
    const at.Tensor& h,
    const at.Tensor& weight,
    const at.Tensor& bias,
    const at.Tensor& gates,
) except -1 nogil:
    """[h, x] weight^T + bias for a small batch, computed as its transpose: vectors hold the batch."""
    cdef int64_t batch = h.size(0), state = h.size(1), features = x.size(1), width = (batch + 15) // 16 * 16
    cdef at.Tensor joined = at.zeros((state + features, width), h.options())
    cdef at.Tensor transposed = at.empty((3 * state, width), h.options())
    cdef const_accessor2[number] upper = const_accessor2[number](h, b"h")
    cdef const_accessor2[number] lower = const_accessor2[number](x, b"x")
    cdef const_accessor2[number] w = const_accessor2[number](weight, b"weight")
    cdef const_accessor1[number] start = const_accessor1[number](bias.contiguous(), b"bias")
    cdef accessor2[number] columns = accessor2[number](joined, b"joined")
    cdef accessor2[number] result = accessor2[number](transposed, b"transposed")
    cdef accessor2[number] to = accessor2[number](gates, b"gates")
    transpose(batch, state, upper.data(), upper.stride(0), upper.stride(1), columns.data(), width)
    transpose(
        batch, features, lower.data(), lower.stride(0), lower.stride(1), columns.data() + state * width, width)
    product(
        3 * state, width, state + features, w.data(), w.stride(0), w.stride(1), columns.data(), width, start.data(),
        result.data(), width)
    transpose(3 * state, batch, result.data(), width, 1, to.data(), 3 * state)
    return 0


cdef int small_gradients(
    const number* kind,
    const at.Tensor& d_gates,
    const at.Tensor& x,
    const at.Tensor& h,
    const at.Tensor& weight,
    const at.Tensor& d_x,
    const at.Tensor& d_h,
    const at.Tensor& d_weight,
    const at.Tensor& d_bias,
) except -1 nogil:
    """The products of backward for a small batch, into those of the last four that are defined."""
    cdef int64_t batch = h.size(0), state = h.size(1), features = x.size(1), gates = 3 * state
    cdef const_accessor2[number] d = const_accessor2[number](d_gates, b"d_gates"), w
    cdef accessor2[number] to, to_h, to_x
    cdef at.Tensor joined
    cdef int64_t i
    cdef accessor1[number] sums
    # One product over the columns of h and of x together, for which the weights are read once.
    if d_x.defined() and d_h.defined():
        joined = at.empty((batch, state + features), h.options())
        to = accessor2[number](joined, b"joined")
        read[number](weight, b"weight", w)
        product(batch, to.size(1), gates, d.data(), gates, 1, w.data(), w.stride(0), NULL, to.data(), to.size(1))
        to_h, to_x = accessor2[number](d_h, b"d_h"), accessor2[number](d_x, b"d_x")
        for i in range(batch):
            copy_row[number](state, to.data() + i * to.size(1), to_h.data() + i * state)
            copy_row[number](features, to.data() + i * to.size(1) + state, to_x.data() + i * features)
    elif d_h.defined():
        read[number](weight, b"weight", w)
        to = accessor2[number](d_h, b"d_h")
        product(batch, state, gates, d.data(), gates, 1, w.data(), w.stride(0), NULL, to.data(), state)
    elif d_x.defined():
        read[number](weight, b"weight", w)
        to = accessor2[number](d_x, b"d_x")
        product(
            batch, features, gates, d.data(), gates, 1, w.data() + state, w.stride(0), NULL, to.data(), features)
    if d_weight.defined():
        joined = at.empty((batch, state + features), h.options())
        join_into[number](NULL, h, x, joined)
        read[number](joined, b"joined", w)
        to = accessor2[number](d_weight, b"d_weight")
        product(
            gates, to.size(1), batch, d.data(), 1, gates, w.data(), w.stride(0), NULL, to.data(), to.size(1))
    if d_bias.defined():
        sums = accessor1[number](d_bias, b"d_bias")
        in_parts(sum_rows[number], gates, batch, batch, gates, d.data(), sums.data())
    return 0


# ---- The cell.

cdef int join(const at.Tensor& h, const at.Tensor& x, const at.Tensor& joined) except -1 nogil:
    if h.scalar_type() == at.kFloat:
        return join_into[float](NULL, h, x, joined)
    if h.scalar_type() == at.kDouble:
        return join_into[double](NULL, h, x, joined)
    return join_into[BFloat16](NULL, h, x, joined)


cdef (at.Tensor, at.Tensor, at.Tensor) fused_forward(
    const at.Tensor& x, const at.Tensor& h, const at.Tensor& c, const at.Tensor& weight, const at.Tensor& bias
) except * nogil:
    """h', c', and the gates after their activations."""
    check_forward(x, h, c, weight, bias, False)
    cdef at.ScalarType dtype = h.scalar_type()
    cdef at.Tensor new_h = at.empty(h.sizes(), h.options()), new_c = at.empty(h.sizes(), h.options())
    cdef at.Tensor gates, joined
    if product_pays(h.size(0)) and dtype != at.kBFloat16:
        gates = at.empty((h.size(0), weight.size(0)), h.options())
        if dtype == at.kFloat:
            small_gates[float](NULL, x, h, weight, bias, gates)
        else:
            small_gates[double](NULL, x, h, weight, bias, gates)
    else:
        joined = at.empty((h.size(0), weight.size(1)), h.options())
        join(h, x, joined)
        gates = at.addmm(bias, joined, weight.t())
    if dtype == at.kFloat:
        forward_into[float](NULL, c, gates, new_h, new_c)
    elif dtype == at.kDouble:
        forward_into[double](NULL, c, gates, new_h, new_c)
    else:
        forward_into[BFloat16](NULL, c, gates, new_h, new_c)
    return new_h, new_c, gates


cdef (at.Tensor, at.Tensor, at.Tensor) meta_forward(
    const at.Tensor& x, const at.Tensor& h, const at.Tensor& c, const at.Tensor& weight, const at.Tensor& bias
) except * nogil:
    cdef vector[at.Tensor] parts
    parts.push_back(h)
    parts.push_back(x)
    return at.empty_like(h), at.empty_like(c), at.addmm(bias, at.cat(parts, 1), weight.t())


cdef void setup_context(
    Context& ctx,
    const at.Tensor& x, const at.Tensor& h, const at.Tensor& c, const at.Tensor& weight, const at.Tensor& bias,
    const at.Tensor& new_h, const at.Tensor& new_c, const at.Tensor& gates,
) except * nogil:
    ctx.mark_non_differentiable(gates)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, h, gates, new_c, weight)


cdef (at.Tensor, at.Tensor, at.Tensor, at.Tensor, at.Tensor) gradient(
    Context& ctx, const at.Tensor& grad_h, const at.Tensor& grad_c, const at.Tensor& _
) except * nogil:
    cdef at.Tensor new_c = ctx.saved_tensor(3)
    cdef Results r = backward_operator.call(
        given_or_zeros(grad_h, new_c), given_or_zeros(grad_c, new_c), ctx.saved_tensor(0), ctx.saved_tensor(1),
        ctx.saved_tensor(2), new_c, ctx.saved_tensor(4), ctx.needs_input_grad(0), ctx.needs_input_grad(1),
        ctx.needs_input_grad(3), ctx.needs_input_grad(4))
    return get0(r), get1(r), get2(r), get3(r), get4(r)


cdef (at.Tensor, at.Tensor, at.Tensor, at.Tensor, at.Tensor) fused_backward(
    const at.Tensor& grad_h,
    const at.Tensor& grad_c,
    const at.Tensor& x,
    const at.Tensor& h,
    const at.Tensor& gates,
    const at.Tensor& new_c,
    const at.Tensor& weight,
    cbool need_x,
    cbool need_h,
    cbool need_weight,
    cbool need_bias,
) except * nogil:
    """The gradients for x, h, c, weight and bias; undefined where not needed, but for c's, which always comes."""
    check_backward(grad_h, grad_c, x, h, gates, new_c, weight, False)
    cdef at.ScalarType dtype = new_c.scalar_type()
    cdef at.Tensor d_x, d_h, d_weight, d_bias, joined
    cdef at.Tensor d_gates = at.empty(gates.sizes(), gates.options()), d_c = at.empty(new_c.sizes(), new_c.options())
    cdef int64_t state = new_c.size(1), features = weight.size(1) - state
    if dtype == at.kFloat:
        backward_into[float](NULL, grad_h, grad_c, gates, new_c, d_gates, d_c)
    elif dtype == at.kDouble:
        backward_into[double](NULL, grad_h, grad_c, gates, new_c, d_gates, d_c)
    else:
        backward_into[BFloat16](NULL, grad_h, grad_c, gates, new_c, d_gates, d_c)

    if product_pays(h.size(0)) and dtype != at.kBFloat16:
        if need_x:
            d_x = at.empty(x.sizes(), x.options())
        if need_h:
            d_h = at.empty(h.sizes(), h.options())
        if need_weight:
            d_weight = at.empty(weight.sizes(), weight.options())
        if need_bias:
            d_bias = at.empty((weight.size(0),), weight.options())
        if dtype == at.kFloat:
            small_gradients[float](NULL, d_gates, x, h, weight, d_x, d_h, d_weight, d_bias)
        else:
            small_gradients[double](NULL, d_gates, x, h, weight, d_x, d_h, d_weight, d_bias)
        return d_x, d_h, d_c, d_weight, d_bias

    if need_h:
        d_h = at.mm(d_gates, weight.narrow(1, 0, state))
    if need_x:
        d_x = at.mm(d_gates, weight.narrow(1, state, features))
    if need_weight:
        joined = at.empty((h.size(0), weight.size(1)), h.options())
        join(h, x, joined)
        d_weight = at.mm(d_gates.t(), joined)
    if need_bias:
        d_bias = at.sum(d_gates, (0,))
    return d_x, d_h, d_c, d_weight, d_bias


cdef (at.Tensor, at.Tensor, at.Tensor, at.Tensor, at.Tensor) meta_backward(
    const at.Tensor& grad_h,
    const at.Tensor& grad_c,
    const at.Tensor& x,
    const at.Tensor& h,
    const at.Tensor& gates,
    const at.Tensor& new_c,
    const at.Tensor& weight,
    cbool need_x,
    cbool need_h,
    cbool need_weight,
    cbool need_bias,
) except * nogil:
    cdef at.Tensor d_x, d_h, d_weight, d_bias
    if need_x:
        d_x = at.empty_like(x)
    if need_h:
        d_h = at.empty_like(h)
    if need_weight:
        d_weight = at.empty_like(weight)
    if need_bias:
        d_bias = at.sum(gates, (0,))
    return d_x, d_h, at.empty_like(new_c), d_weight, d_bias


cdef vector[at.Tensor] second_gradient(
    Context& ctx, const at.Tensor& _1, const at.Tensor& _2, const at.Tensor& _3, const at.Tensor& _4,
    const at.Tensor& _5,
) except * nogil:
    with gil:
        raise NotImplementedError("lltm::fused has no second derivative; use a cell of plain PyTorch for one")


define("lltm::fused", "(Tensor x, Tensor h, Tensor c, Tensor weight, Tensor bias) -> (Tensor, Tensor, Tensor)")
impl("lltm::fused", "CPU", fused_forward)
impl("lltm::fused", "Meta", meta_forward)
define(
    "lltm::fused_backward",
    "(Tensor grad_h, Tensor grad_c, Tensor x, Tensor h, Tensor gates, Tensor new_c, Tensor weight, bool need_x, "
    "bool need_h, bool need_weight, bool need_bias) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)
impl("lltm::fused_backward", "CPU", fused_backward)
impl("lltm::fused_backward", "Meta", meta_backward)
register_autograd("lltm::fused", gradient, setup_context)
register_autograd("lltm::fused_backward", second_gradient)
