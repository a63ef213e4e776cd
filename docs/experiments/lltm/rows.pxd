# The elementwise work of the fused cell, in loops over plain memory that g++ vectorises.
cimport cython
from c10.util.BFloat16 cimport BFloat16
from interop.instruction_sets cimport const_restricted, restricted
from interop.vector_math cimport elu, sigmoid, tanh, widen
from libc.stdint cimport int64_t
from libc.string cimport memcpy

ctypedef fused element:
    float
    double
    BFloat16

ctypedef fused number:
    float
    double


# One row of the batch. i, o, z and the like have the type that `widen` gives: float for BFloat16.
@cython.infer_types(True)
cdef inline void forward_row(
    int64_t state,
    restricted[element] gates,
    const_restricted[element] c,
    restricted[element] new_h,
    restricted[element] new_c,
) noexcept nogil:
    cdef int64_t k
    for k in range(state):
        i = sigmoid(widen(gates[k]))
        o = sigmoid(widen(gates[state + k]))
        z = elu(widen(gates[2 * state + k]))
        s = widen(c[k]) + z * i
        gates[k] = i
        gates[state + k] = o
        gates[2 * state + k] = z
        new_c[k] = s
        new_h[k] = tanh(s) * o


@cython.infer_types(True)
cdef inline void backward_row(
    int64_t state,
    const_restricted[element] grad_h,
    const_restricted[element] grad_c,
    const_restricted[element] gates,
    const_restricted[element] new_c,
    restricted[element] d_gates,
    restricted[element] d_c,
) noexcept nogil:
    cdef int64_t k
    for k in range(state):
        i = widen(gates[k])
        o = widen(gates[state + k])
        z = widen(gates[2 * state + k])
        t = tanh(widen(new_c[k]))
        g = widen(grad_h[k])
        d = widen(grad_c[k]) + g * o * (1 - t * t)
        d_gates[k] = d * z * (1 - i) * i
        d_gates[state + k] = g * t * (1 - o) * o
        d_gates[2 * state + k] = d * i * (1 if z > 0 else z + 1)
        d_c[k] = d


cdef inline void copy_row(int64_t width, const element* source, element* target) noexcept nogil:
    # Not element by element: g++ makes no vectors of a loop that copies elements of a class, such as BFloat16.
    if width:  # an empty tensor may be at NULL
        memcpy(target, source, width * sizeof(element))


# Rows begin to end, or columns. Elements of a row lie next to one another; the rows of what the caller gave may lie
# anywhere.

cdef inline void forward_rows(
    int64_t begin,
    int64_t end,
    int64_t state,
    element* gates,
    const element* c,
    int64_t c_stride,
    element* new_h,
    element* new_c,
) noexcept nogil:
    cdef int64_t row
    for row in range(begin, end):
        forward_row[element](
            state,
            restricted[element](gates + row * 3 * state),
            const_restricted[element](c + row * c_stride),
            restricted[element](new_h + row * state),
            restricted[element](new_c + row * state),
        )


cdef inline void backward_rows(
    int64_t begin,
    int64_t end,
    int64_t state,
    const element* grad_h,
    int64_t grad_h_stride,
    const element* grad_c,
    int64_t grad_c_stride,
    const element* gates,
    int64_t gates_stride,
    const element* new_c,
    int64_t new_c_stride,
    element* d_gates,
    element* d_c,
) noexcept nogil:
    cdef int64_t row
    for row in range(begin, end):
        backward_row[element](
            state,
            const_restricted[element](grad_h + row * grad_h_stride),
            const_restricted[element](grad_c + row * grad_c_stride),
            const_restricted[element](gates + row * gates_stride),
            const_restricted[element](new_c + row * new_c_stride),
            restricted[element](d_gates + row * 3 * state),
            restricted[element](d_c + row * state),
        )


cdef inline void join_rows(
    int64_t begin,
    int64_t end,
    const element* h,
    int64_t state,
    int64_t h_stride,
    const element* x,
    int64_t features,
    int64_t x_stride,
    element* joined,
) noexcept nogil:
    cdef int64_t row
    cdef element* to
    for row in range(begin, end):
        to = joined + row * (state + features)
        copy_row[element](state, h + row * h_stride, to)
        copy_row[element](features, x + row * x_stride, to + state)


@cython.infer_types(True)
cdef inline void sum_rows(
    int64_t begin,
    int64_t end,
    int64_t rows,
    int64_t columns,
    const_restricted[element] source,
    restricted[element] target,
) noexcept nogil:
    cdef int64_t row, column
    for column in range(begin, end):
        target[column] = 0
    for row in range(rows):
        for column in range(begin, end):
            target[column] = widen(target[column]) + widen(source[row * columns + column])
