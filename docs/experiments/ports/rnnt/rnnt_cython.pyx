# cython: cdivision=True
# distutils: extra_compile_args = -fno-trapping-math
# The recursion of fast_rnnt, its value and its derivatives, as an operator.
#
#     p[s, t] = log(exp(p[s - 1, t] + px[s - 1, t]) + exp(p[s, t - 1] + py[s, t - 1]))    p[0, 0] = 0
#
# In the modified variant a symbol takes a frame: the first term is p[s - 1, t - 1] + px[s - 1, t - 1].
#
# The original goes from row to row, and each value waits for the one to its left. Here a step is all values that wait
# for nothing but the step before: a diagonal, s + t = step, or in the modified variant a column, t = step. So g++ makes
# vectors of a step. What a step needs of px and py does not lie together: 16 steps are transposed at a time.
#
# The forward loop keeps the share of the first term in each value, exp(first - p). The backward loop needs no exp then:
# of the gradient g of a value, g * share goes to the first term, and g * (1 - share) to the second.
cimport ATen as at
from interop cimport (
    check_index, check_type, check_value, dispatch_part, floating, get0, get1, get2, make_tuple, numeric_limits, tuple2,
    tuple3,
)
from interop.instruction_sets cimport const_restricted, restricted, vectorized
from interop.vector_math cimport exp
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.atomic cimport atomic
from libcpp.optional cimport optional
from libcpp.vector cimport vector
from torch.autograd cimport Context
from torch.library cimport Operator, Tag, define, impl, register_autograd

cdef enum:
    STEPS = 16        # that are transposed together: a cache line of each row
    LANES = 16        # a vector, or several
    VALUES = 1 << 13  # of p, that a thread is worth starting for


# One batch item: the part of its matrices that its boundary leaves. The pointers are to the first element of that part.
cdef struct Item:
    const void* px
    const void* py
    void* px_grad  # if gradients are wanted
    void* py_grad
    int64_t S, T


# What the threads share: each takes the next item that nobody has.
cdef struct Batch:
    Item* items
    void* scores
    cbool gradients  # whether they are wanted
    int64_t count
    atomic[int64_t]* next_item
    int64_t px_row, px_column, py_row, py_column  # strides; those of columns are 1 in gradients
    int64_t px_grad_row, py_grad_row
    int64_t skew   # 1, or 0 in the modified variant: value (s, t) belongs to step t + skew * s
    void* memory
    int64_t state  # the numbers of elements in parts of a thread's memory: the values of a step,
    int64_t pitch  # a step of a transposed block,
    int64_t width  # the shares of a step,
    int64_t size   # and all of it


cdef inline int64_t whole(int64_t n) noexcept nogil:
    return (n + LANES - 1) // LANES * LANES


# ---- A step. The values of a step are in order of s.

cdef void advance(
    int64_t n,
    const_restricted[floating] old,
    const_restricted[floating] x,
    const_restricted[floating] y,
    restricted[floating] p,
) noexcept nogil:
    """p = log(exp(first) + exp(second)). Of two infinities, and beside nan, it is the original's."""
    cdef int64_t i
    cdef floating first, second, larger, difference, e, z, q, series
    for i in range(n):
        first = old[i - 1] + x[i]
        second = old[i] + y[i]
        larger = second if first < second else first
        difference = first - second if first < second else second - first
        e = exp(difference)
        # log(1 + e) for e from 0 to 1 is 2 atanh(z), z = e / (2 + e): its Taylor series, in q = z^2 <= 1/9.
        z = e / (e + <floating> 2)
        q = z * z
        series = 0
        if floating is double:
            series = <floating> (1. / 31)
            series = series * q + <floating> (1. / 29)
            series = series * q + <floating> (1. / 27)
            series = series * q + <floating> (1. / 25)
            series = series * q + <floating> (1. / 23)
            series = series * q + <floating> (1. / 21)
            series = series * q + <floating> (1. / 19)
            series = series * q + <floating> (1. / 17)
            series = series * q + <floating> (1. / 15)
        series = series * q + <floating> (1. / 13)
        series = series * q + <floating> (1. / 11)
        series = series * q + <floating> (1. / 9)
        series = series * q + <floating> (1. / 7)
        series = series * q + <floating> (1. / 5)
        series = series * q + <floating> (1. / 3)
        z = z + z
        series = larger + (z + z * q * series)
        p[i] = series if difference - difference == 0 else larger


cdef void share(
    int64_t n,
    const_restricted[floating] old,
    const_restricted[floating] x,
    const_restricted[floating] p,
    restricted[floating] shares,
) noexcept nogil:
    """The shares of the first terms in p. One that is not finite says that no gradient passes."""
    cdef int64_t i
    cdef floating total, zero = 0
    for i in range(n):
        total = p[i]
        shares[i] = exp(old[i - 1] + x[i] - (total if total - total == 0 else zero))


cdef void retreat(
    int64_t n,
    const_restricted[floating] shares,
    const_restricted[floating] grad,
    restricted[floating] x,
    restricted[floating] y,
) noexcept nogil:
    """The gradients of px and py that belong to a step, out of those of its values."""
    cdef int64_t i
    cdef floating w, g, zero = 0
    for i in range(n):
        w = shares[i]
        g = grad[i]
        x[i] = w * g if w - w == 0 else zero
        y[i] = (<floating> 1 - w) * g if w - w == 0 else zero


cdef void collect(
    int64_t n,
    const_restricted[floating] x,
    const_restricted[floating] y,
    restricted[floating] grad,
) noexcept nogil:
    """The gradients of the values of the step before."""
    cdef int64_t i
    for i in range(n):
        grad[i] = y[i] + x[i + 1]


# ---- Between matrices and blocks of steps.

cdef void copy(
    int64_t n, const floating* source, int64_t source_stride, floating* target, int64_t target_stride
) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        target[i * target_stride] = source[i * source_stride]


cdef inline int64_t first_row(const Batch* batch, const Item* item, int64_t step) noexcept nogil:
    """The first s in a step."""
    return max(<int64_t> 0, step - item.T) if batch.skew else 0


cdef inline int64_t last_row(const Batch* batch, const Item* item, int64_t step) noexcept nogil:
    return min(item.S, step) if batch.skew else item.S


cdef void transpose(
    const Batch* batch, const Item* item, int64_t step, int64_t steps, floating* x, floating* y, cbool back
) noexcept nogil:
    """Copies what some steps need of px and py into blocks, or gradients out of blocks.

    Value (s, t) of a block's step is x[step, s], which is px[s - 1, t] or px[s - 1, t - 1], and y[step, s], which is
    py[s, t - 1]. Where the matrices have no such element, the block keeps what it has.
    """
    cdef int64_t s, column, begin, end, pitch = batch.pitch
    for s in range(first_row(batch, item, step), last_row(batch, item, step + steps - 1) + 1):
        column = step - 1 - batch.skew * s  # of py, in the first step
        begin = max(<int64_t> 0, -column)
        end = min(steps, item.T - column)
        if begin < end and back:
            copy[floating](
                end - begin, y + begin * pitch + s, pitch,
                <floating*> item.py_grad + s * batch.py_grad_row + column + begin, 1)
        elif begin < end:
            copy[floating](
                end - begin, <const floating*> item.py + s * batch.py_row + (column + begin) * batch.py_column,
                batch.py_column, y + begin * pitch + s, pitch)
        if s == 0:
            continue
        column += batch.skew  # of px
        begin = max(<int64_t> 0, -column)
        end = min(steps, item.T + batch.skew - column)
        if begin < end and back:
            copy[floating](
                end - begin, x + begin * pitch + s, pitch,
                <floating*> item.px_grad + (s - 1) * batch.px_grad_row + column + begin, 1)
        elif begin < end:
            copy[floating](
                end - begin, <const floating*> item.px + (s - 1) * batch.px_row + (column + begin) * batch.px_column,
                batch.px_column, x + begin * pitch + s, pitch)


# ---- An item.
#
# A step is computed in whole vectors. What they compute beside the values of the step is never used: the first value,
# with s = 0, has no first term, and the last one, with t = 0, no second one, so both are written once more.

cdef void solve(const Batch* batch, int64_t index, int64_t worker, floating* _) noexcept nogil:
    cdef const Item* item = batch.items + index
    cdef floating* old = <floating*> batch.memory + worker * batch.size + LANES
    cdef floating* p = old + batch.state
    cdef floating* x = p + batch.state - LANES
    cdef floating* y = x + STEPS * batch.pitch
    cdef floating* shares = y + STEPS * batch.pitch
    cdef floating* row_x
    cdef floating* row_y
    cdef floating* row
    cdef floating* other
    cdef int64_t steps = item.T + batch.skew * item.S
    cdef int64_t blocks = (steps + STEPS - 1) // STEPS, block, step, count, i, j, first, last, begin, n

    for i in range(item.S + 1):
        old[i] = -numeric_limits[floating].infinity()
    old[0] = 0
    for block in range(blocks):
        step = 1 + block * STEPS
        count = min(<int64_t> STEPS, steps + 1 - step)
        transpose[floating](batch, item, step, count, x, y, False)
        for j in range(count):
            first, last = first_row(batch, item, step + j), last_row(batch, item, step + j)
            begin = first // LANES * LANES
            n = whole(last + 1) - begin
            row_x, row_y = x + j * batch.pitch + begin, y + j * batch.pitch + begin
            row = shares + (step + j) * batch.width
            advance[floating](
                n, const_restricted[floating](old + begin), const_restricted[floating](row_x),
                const_restricted[floating](row_y), restricted[floating](p + begin))
            if batch.gradients:
                share[floating](
                    n, const_restricted[floating](old + begin), const_restricted[floating](row_x),
                    const_restricted[floating](p + begin), restricted[floating](row))
            if first == 0:
                p[0] = old[0] + row_y[0]
                if batch.gradients:
                    row[0] = 0
            if batch.skew and last == step + j:
                p[last] = old[last - 1] + row_x[last - begin]
                if batch.gradients:
                    row[last - begin] = 1
            other = old
            old = p
            p = other
    (<floating*> batch.scores)[index] = old[item.S]
    if not batch.gradients:
        return

    # `p` becomes the gradients of a step's values: zero beside them, so that whole vectors do no harm.
    for i in range(-LANES, whole(item.S + 1) + LANES):
        p[i] = 0
    p[item.S] = 1
    for block in range(blocks - 1, -1, -1):
        step = 1 + block * STEPS
        count = min(<int64_t> STEPS, steps + 1 - step)
        for j in range(count - 1, -1, -1):
            first, last = first_row(batch, item, step + j), last_row(batch, item, step + j)
            begin = first // LANES * LANES
            n = whole(last + 1) - begin
            row_x, row_y = x + j * batch.pitch + begin, y + j * batch.pitch + begin
            retreat[floating](
                n, const_restricted[floating](shares + (step + j) * batch.width), const_restricted[floating](p + begin),
                restricted[floating](row_x), restricted[floating](row_y))
            row_x[n] = 0
            collect[floating](
                n, const_restricted[floating](row_x), const_restricted[floating](row_y),
                restricted[floating](p + begin))
            if first > 0:
                p[first - 1] = row_x[first - begin]
        transpose[floating](batch, item, step, count, x, y, True)


cdef void solve_items(int64_t worker, int64_t end, floating* data) noexcept nogil:
    cdef Batch* batch = <Batch*> data
    cdef int64_t index = batch.next_item.fetch_add(1)
    while index < batch.count:
        vectorized(solve[floating], batch, index, worker, data)
        index = batch.next_item.fetch_add(1)


# ---- The operator.

cdef void check_arguments(const at.Tensor& px, const at.Tensor& py, const optional[at.Tensor]& boundary) except * nogil:
    """What can be checked of symbolic sizes too."""
    check_value(
        px.dim() == 3, b"mutual_information: px must have 3 dimensions, [B, S, T + 1] or [B, S, T], got ", px.dim(),
        b" (sizes ", px.sym_sizes(), b")")
    check_value(
        py.dim() == 3, b"mutual_information: py must have 3 dimensions, [B, S + 1, T], got ", py.dim(), b" (sizes ",
        py.sym_sizes(), b")")
    check_type(
        py.scalar_type() == px.scalar_type(), b"mutual_information: py must have the dtype of px, ", px.scalar_type(),
        b", got ", py.scalar_type(), b"; convert it with .to(px.dtype)")
    if boundary.has_value():
        check_type(
            boundary.value().scalar_type() == at.kLong, b"mutual_information: boundary must be of int64, got ",
            boundary.value().scalar_type(), b"; convert it with .long()")
        check_value(
            boundary.value().dim() == 2, b"mutual_information: boundary must have 2 dimensions, [B, 4], got ",
            boundary.value().dim(), b" (sizes ", boundary.value().sym_sizes(), b")")


cdef inline const void* place(const at.Tensor& tensor, int64_t item, int64_t row, int64_t column) except * nogil:
    return <const char*> tensor.const_data_ptr() + tensor.element_size() * (
        item * tensor.stride(0) + row * tensor.stride(1) + column * tensor.stride(2))


cdef vector[Item] items_of(
    const at.Tensor& px, const at.Tensor& py, const optional[at.Tensor]& boundary, const at.Tensor& px_grad,
    const at.Tensor& py_grad, cbool gradients,
) except * nogil:
    """The items. Their bounds are copied, so that nobody can change them after they were checked."""
    cdef int64_t B = px.size(0), S = px.size(1), T = py.size(2), b, s_begin = 0, t_begin = 0, s_end = S, t_end = T
    cdef vector[Item] items
    cdef Item item
    cdef at.Tensor bounds
    cdef const int64_t* row = NULL
    if boundary.has_value():
        bounds = boundary.value().contiguous()
        check_value(
            bounds.size(0) == B and bounds.size(1) == 4, b"mutual_information: boundary must have sizes [", B,
            b", 4], a row for each item of px, got ", bounds.sizes())
        row = bounds.const_data_ptr[int64_t]()
    items.reserve(B)
    for b in range(B):
        if row != NULL:
            s_begin, t_begin, s_end, t_end = row[4 * b], row[4 * b + 1], row[4 * b + 2], row[4 * b + 3]
            check_index(
                0 <= s_begin and s_begin <= s_end and s_end <= S and 0 <= t_begin and t_begin <= t_end and t_end <= T,
                b"mutual_information: boundary must have rows [s_begin, t_begin, s_end, t_end] with 0 <= s_begin <= "
                b"s_end <= ", S, b" and 0 <= t_begin <= t_end <= ", T, b", got [", s_begin, b", ", t_begin, b", ",
                s_end, b", ", t_end, b"] for item ", b)
        item.S, item.T = s_end - s_begin, t_end - t_begin
        item.px, item.py = place(px, b, s_begin, t_begin), place(py, b, s_begin, t_begin)
        item.px_grad, item.py_grad = NULL, NULL
        if gradients:
            item.px_grad = <void*> place(px_grad, b, s_begin, t_begin)
            item.py_grad = <void*> place(py_grad, b, s_begin, t_begin)
        items.push_back(item)
    return items


cdef (at.Tensor, at.Tensor, at.Tensor) mutual_information(
    const at.Tensor& px, const at.Tensor& py, const optional[at.Tensor]& boundary, cbool calc_gradients
) except * nogil:
    """p[s_end, t_end] of each item, and its gradients for px and py, or two empty tensors."""
    check_arguments(px, py, boundary)
    cdef int64_t B = px.size(0), S = px.size(1), T = py.size(2), workers
    cdef cbool modified = px.size(2) == T
    check_value(
        py.size(0) == B and py.size(1) == S + 1 and (modified or px.size(2) == T + 1),
        b"mutual_information: py must have sizes [B, S + 1, T] where px has [B, S, T + 1], or [B, S, T] in the "
        b"modified variant, got ", py.sizes(), b" where px has ", px.sizes())
    cdef at.Tensor scores = at.empty((B,), px.options()), px_grad, py_grad, memory
    cdef vector[Item] items
    cdef Batch batch
    cdef atomic[int64_t] next_item
    if not calc_gradients:
        px_grad, py_grad = at.empty((0,), px.options()), at.empty((0,), px.options())
    elif boundary.has_value():  # Beyond the bounds gradients are zero.
        px_grad, py_grad = at.zeros(px.sizes(), px.options()), at.zeros(py.sizes(), py.options())
    else:
        px_grad, py_grad = at.empty(px.sizes(), px.options()), at.empty(py.sizes(), py.options())
    items = items_of(px, py, boundary, px_grad, py_grad, calc_gradients)
    if B == 0:
        return scores, px_grad, py_grad

    batch.items, batch.count, batch.scores = items.data(), B, scores.mutable_data_ptr()
    batch.gradients = calc_gradients
    batch.px_row, batch.px_column = px.stride(1), px.stride(2)
    batch.py_row, batch.py_column = py.stride(1), py.stride(2)
    batch.px_grad_row, batch.py_grad_row = px.size(2), T
    batch.skew = 0 if modified else 1
    batch.state = whole(S + 1) + 2 * LANES
    batch.pitch = (whole(S + 1) + LANES) | LANES  # an odd multiple: steps do not fall on the same lines of the cache
    batch.width = whole(S + 1) if modified else whole(min(S, T) + 1) + LANES
    batch.size = 2 * batch.state + 2 * STEPS * batch.pitch
    if calc_gradients:
        batch.size += (T + batch.skew * S + 1) * batch.width
    workers = min(<int64_t> at.get_num_threads(), min(B, B * (S + 1) * (T + 1) // VALUES + 1))
    memory = at.empty((workers, batch.size), px.options())
    batch.memory = memory.mutable_data_ptr()
    next_item.store(0)
    batch.next_item = &next_item
    at.parallel_for(
        0, workers, 1,
        dispatch_part(px.scalar_type(), b"mutual_information", solve_items[float], solve_items[double]), &batch)
    return scores, px_grad, py_grad


cdef (at.Tensor, at.Tensor, at.Tensor) mutual_information_meta(
    const at.Tensor& px, const at.Tensor& py, const optional[at.Tensor]& boundary, cbool calc_gradients
) except * nogil:
    check_arguments(px, py, boundary)
    cdef at.Tensor scores = at.empty_symint((px.sym_size(0),), px.options())
    if not calc_gradients:
        return scores, at.empty((0,), px.options()), at.empty((0,), px.options())
    return scores, at.empty_symint(px.sym_sizes(), px.options()), at.empty_symint(py.sym_sizes(), py.options())


# ---- Its gradient.

ctypedef tuple2[at.Tensor, at.Tensor] Two
ctypedef tuple3[at.Tensor, at.Tensor, at.Tensor] Three


cdef (at.Tensor, at.Tensor) mutual_information_backward(
    const at.Tensor& grad, const at.Tensor& px_grad, const at.Tensor& py_grad, const at.Tensor& px,
    const at.Tensor& py,
) except * nogil:
    """The gradients of an item's score times its incoming gradient.

    px and py are arguments for autograd's sake: a second derivative comes here, and raises.
    """
    cdef at.Tensor factor = grad.unsqueeze(-1).unsqueeze(-1)
    return at.mul(px_grad, factor), at.mul(py_grad, factor)


cdef vector[at.Tensor] second_gradient(Context& ctx, const at.Tensor& _1, const at.Tensor& _2) except * nogil:
    with gil:
        raise NotImplementedError("ports_rnnt::mutual_information has no second derivative")


cdef void setup_context(
    Context& ctx, const at.Tensor& px, const at.Tensor& py, const optional[at.Tensor]& boundary, cbool calc_gradients,
    const at.Tensor& scores, const at.Tensor& px_grad, const at.Tensor& py_grad,
) except * nogil:
    cdef at.Tensor bounds
    ctx.mark_non_differentiable(px_grad)
    ctx.mark_non_differentiable(py_grad)
    ctx.set_materialize_grads(False)
    ctx.state[cbool]()[0] = calc_gradients
    if calc_gradients:
        ctx.save_for_backward(px, py, px_grad, py_grad)
    elif boundary.has_value():
        bounds = boundary.value()
        ctx.save_for_backward(px, py, bounds)
    else:
        ctx.save_for_backward(px, py)


cdef Two gradients_of(Context& ctx) except * nogil:
    """The gradients of the scores. If the call did not ask for them, they are computed now."""
    cdef optional[at.Tensor] boundary
    cdef Three again
    if ctx.state[cbool]()[0]:
        return make_tuple(ctx.saved_tensor(2), ctx.saved_tensor(3))
    if ctx.saved_tensors() == 3:
        boundary = optional[at.Tensor](ctx.saved_tensor(2))
    again = Operator[Three](b"ports_rnnt::mutual_information").call(
        ctx.saved_tensor(0), ctx.saved_tensor(1), boundary, True)
    return make_tuple(get1(again), get2(again))


cdef (at.Tensor, at.Tensor, at.Tensor, at.Tensor) gradient(
    Context& ctx, const at.Tensor& grad, const at.Tensor& _px_grad, const at.Tensor& _py_grad
) except * nogil:
    cdef Two gradients
    if not grad.defined():
        return at.Tensor(), at.Tensor(), at.Tensor(), at.Tensor()
    gradients = gradients_of(ctx)
    gradients = Operator[Two](b"ports_rnnt::mutual_information_backward").call(
        grad, get0(gradients), get1(gradients), ctx.saved_tensor(0), ctx.saved_tensor(1))
    return get0(gradients), get1(gradients), at.Tensor(), at.Tensor()


define(
    "ports_rnnt::mutual_information",
    "(Tensor px, Tensor py, Tensor? boundary=None, bool calc_gradients=False) -> (Tensor, Tensor, Tensor)",
    Tag.pt2_compliant_tag,
)
impl("ports_rnnt::mutual_information", "CPU", mutual_information)
impl("ports_rnnt::mutual_information", "Meta", mutual_information_meta)
register_autograd("ports_rnnt::mutual_information", gradient, setup_context)
define(
    "ports_rnnt::mutual_information_backward",
    "(Tensor grad, Tensor px_grad, Tensor py_grad, Tensor px, Tensor py) -> (Tensor, Tensor)",
    Tag.pt2_compliant_tag,
)
impl("ports_rnnt::mutual_information_backward", "CompositeExplicitAutograd", mutual_information_backward)
register_autograd("ports_rnnt::mutual_information_backward", second_gradient)
