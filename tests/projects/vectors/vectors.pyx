# The functions of interop.vector_math in loops that are vectorised.
cimport cython
cimport torch
cimport ATen as at
from c10.util.BFloat16 cimport BFloat16
from interop cimport vector_math
from interop cimport accessor1, const_accessor1
from interop.instruction_sets cimport const_restricted, restricted, vectorized
from libc.stdint cimport int64_t

ctypedef fused element:
    float
    double
    BFloat16

NAMES = ("exp", "expm1", "sigmoid", "tanh", "elu")


@cython.infer_types(True)
cdef void loop(int64_t n, int function, const_restricted[element] x, restricted[element] y) noexcept nogil:
    cdef int64_t k
    if function == 0:
        for k in range(n):
            y[k] = vector_math.exp(vector_math.widen(x[k]))
    elif function == 1:
        for k in range(n):
            y[k] = vector_math.expm1(vector_math.widen(x[k]))
    elif function == 2:
        for k in range(n):
            y[k] = vector_math.sigmoid(vector_math.widen(x[k]))
    elif function == 3:
        for k in range(n):
            y[k] = vector_math.tanh(vector_math.widen(x[k]))
    else:
        for k in range(n):
            y[k] = vector_math.elu(vector_math.widen(x[k]))


cdef int run(const element* kind, const at.Tensor& x, const at.Tensor& y, int function) except -1 nogil:
    cdef const_accessor1[element] source = const_accessor1[element](x, b"x")
    cdef accessor1[element] target = accessor1[element](y, b"y")
    vectorized(loop[element], source.size(0), function, source.data(), target.data())
    return 0


def apply(str name not None, torch.Tensor x not None):
    """The function `name` of each element of the contiguous vector x, calculated as vectorised code does."""
    cdef int function = NAMES.index(name)
    cdef at.Tensor y = at.empty_like(x.cdata)
    if x.cdata.scalar_type() == at.kFloat:
        run[float](NULL, x.cdata, y, function)
    elif x.cdata.scalar_type() == at.kDouble:
        run[double](NULL, x.cdata, y, function)
    else:
        run[BFloat16](NULL, x.cdata, y, function)
    return torch.wrap(y)
