# The kernels of lltm::fused and lltm::fused_backward for CUDA. The operators themselves, what they compute without
# memory (Meta) and their gradient are those of the experiment lltm, in cell_fused.pyx.
#
# A launch costs the host some microseconds, and a small cell the GPU no more. So the number of launches is what counts
# there, and for large ones how often memory is read: everything but the matrix products is one kernel.
cimport ATen as at
cimport torch
from checks cimport check_backward, check_forward
from interop.cuda cimport Launch, check_data, check_same_device
from libc.stdint cimport int8_t, int64_t
from libcpp cimport bool as cbool
from torch.library cimport impl, register_autocast

cdef extern from "cell_cuda.h" nogil:
    cppclass Rows:
        Rows() noexcept
        const void* data
        int64_t row_stride
        int64_t column_stride

    int lltm_join(
        int8_t dtype, int64_t batch, int64_t state, int64_t features, Rows h, Rows x, void* joined, void* stream,
    ) noexcept
    int lltm_forward(
        int8_t dtype, int64_t batch, int64_t state, void* gates, Rows c, void* new_h, void* new_c, void* stream,
    ) noexcept
    int lltm_backward(
        int8_t dtype,
        int64_t batch,
        int64_t state,
        Rows grad_h,
        Rows grad_c,
        Rows gates,
        Rows new_c,
        void* d_gates,
        void* d_c,
        void* stream,
    ) noexcept
    int lltm_sum(
        int8_t dtype, int64_t rows, int64_t columns, const void* matrix, void* sums, void* stream,
    ) noexcept

# The maximum number of rows for which one thread adds up a column. For more, at.sum is faster: it uses many threads.
cdef int64_t FEW_ROWS = 64


cdef inline int8_t dtype_of(const at.Tensor& tensor) noexcept nogil:
    return <int8_t><int>tensor.scalar_type()


cdef int read(const at.Tensor& tensor, Rows& rows) except -1 nogil:
    rows.data = tensor.const_data_ptr()
    rows.row_stride = tensor.stride(0)
    rows.column_stride = tensor.stride(1)
    return 0


cdef int check_places(
    const at.Tensor& h,
    const at.Tensor& x,
    const at.Tensor& weight,
    const char* other_name, const at.Tensor& other,
    const char* other2_name, const at.Tensor& other2,
) except -1 nogil:
    """Torch comes here if any of the arguments is on a GPU."""
    check_same_device(x, b"x", h, b"h")
    check_same_device(weight, b"weight", h, b"h")
    check_same_device(other, other_name, h, b"h")
    check_same_device(other2, other2_name, h, b"h")
    check_data(h, b"h")
    check_data(x, b"x")
    check_data(weight, b"weight")
    check_data(other, other_name)
    check_data(other2, other2_name)
    return 0


cdef int join(Launch& launch, const at.Tensor& h, const at.Tensor& x, const at.Tensor& joined) except -1 nogil:
    cdef Rows left, right
    read(h, left)
    read(x, right)
    launch.check(
        lltm_join(
            dtype_of(h), h.size(0), h.size(1), x.size(1), left, right, joined.mutable_data_ptr(), launch.stream()),
        b"lltm_join")
    return 0


cdef int forward_pass(
    Launch& launch, const at.Tensor& gates, const at.Tensor& c, const at.Tensor& new_h, const at.Tensor& new_c
) except -1 nogil:
    """All elementwise work; `gates` holds what the product gave, and then its activations."""
    cdef Rows old_c
    read(c, old_c)
    launch.check(
        lltm_forward(
            dtype_of(c), c.size(0), c.size(1), gates.mutable_data_ptr(), old_c, new_h.mutable_data_ptr(),
            new_c.mutable_data_ptr(), launch.stream()),
        b"lltm_forward")
    return 0


cdef int backward_pass(
    Launch& launch,
    const at.Tensor& grad_h,
    const at.Tensor& grad_c,
    const at.Tensor& gates,
    const at.Tensor& new_c,
    const at.Tensor& d_gates,
    const at.Tensor& d_c,
) except -1 nogil:
    cdef Rows from_h, from_c, activations, c
    read(grad_h, from_h)
    read(grad_c, from_c)
    read(gates, activations)
    read(new_c, c)
    launch.check(
        lltm_backward(
            dtype_of(new_c), new_c.size(0), new_c.size(1), from_h, from_c, activations, c, d_gates.mutable_data_ptr(),
            d_c.mutable_data_ptr(), launch.stream()),
        b"lltm_backward")
    return 0


cdef int sum_columns(Launch& launch, const at.Tensor& matrix, at.Tensor& sums) except -1 nogil:
    if matrix.size(0) > FEW_ROWS:
        sums = at.sum(matrix, (0,))
        return 0
    sums = at.empty((matrix.size(1),), matrix.options())
    launch.check(
        lltm_sum(
            dtype_of(matrix), matrix.size(0), matrix.size(1), matrix.const_data_ptr(), sums.mutable_data_ptr(),
            launch.stream()),
        b"lltm_sum")
    return 0


cdef (at.Tensor, at.Tensor, at.Tensor) cuda_forward(
    const at.Tensor& x, const at.Tensor& h, const at.Tensor& c, const at.Tensor& weight, const at.Tensor& bias
) except * nogil:
    """h', c', and the gates after their activations."""
    check_forward(x, h, c, weight, bias, True)
    check_places(h, x, weight, b"c", c, b"bias", bias)
    cdef Launch launch = Launch(h)
    cdef at.Tensor joined = at.empty((h.size(0), weight.size(1)), h.options())
    cdef at.Tensor new_h = at.empty(h.sizes(), h.options()), new_c = at.empty(h.sizes(), h.options())
    join(launch, h, x, joined)
    cdef at.Tensor gates = at.addmm(bias, joined, weight.t())
    forward_pass(launch, gates, c, new_h, new_c)
    return new_h, new_c, gates


cdef (at.Tensor, at.Tensor, at.Tensor, at.Tensor, at.Tensor) cuda_backward(
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
    check_backward(grad_h, grad_c, x, h, gates, new_c, weight, True)
    check_places(h, x, weight, b"grad_h", grad_h, b"grad_c", grad_c)
    check_places(h, x, weight, b"gates", gates, b"new_c", new_c)
    cdef Launch launch = Launch(h)
    cdef int64_t batch = h.size(0), state = h.size(1)
    cdef at.Tensor d_x, d_h, d_weight, d_bias, joined
    cdef at.Tensor d_gates = at.empty((batch, 3 * state), h.options()), d_c = at.empty(h.sizes(), h.options())
    backward_pass(launch, grad_h, grad_c, gates, new_c, d_gates, d_c)
    if need_h:
        d_h = at.mm(d_gates, weight.narrow(1, 0, state))
    if need_x:
        d_x = at.mm(d_gates, weight.narrow(1, state, x.size(1)))
    if need_weight:
        joined = at.empty((batch, weight.size(1)), h.options())
        join(launch, h, x, joined)
        d_weight = at.mm(d_gates.t(), joined)
    if need_bias:
        sum_columns(launch, d_gates, d_bias)
    return d_x, d_h, d_c, d_weight, d_bias


impl("lltm::fused", "CUDA", cuda_forward)
impl("lltm::fused_backward", "CUDA", cuda_backward)
register_autocast("lltm::fused", "cuda")


def forward(
    torch.Tensor x not None,
    torch.Tensor h not None,
    torch.Tensor c not None,
    torch.Tensor weight not None,
    torch.Tensor bias not None,
):
    """The kernel of lltm::fused itself, without the dispatcher: what it says to tensors that it does not take."""
    cdef at.Tensor new_h, new_c, gates
    new_h, new_c, gates = cuda_forward(x.cdata, h.cdata, c.cdata, weight.cdata, bias.cdata)
    return torch.wrap(new_h), torch.wrap(new_c), torch.wrap(gates)


# The two kernels alone, to measure them. Tensors are contiguous, of one dtype and on one device.

def pointwise_forward(
    torch.Tensor gates not None, torch.Tensor c not None, torch.Tensor new_h not None, torch.Tensor new_c not None
):
    check_all(gates, c, new_h, new_c)
    cdef Launch launch = Launch(gates.cdata)
    forward_pass(launch, gates.cdata, c.cdata, new_h.cdata, new_c.cdata)


def pointwise_backward(
    torch.Tensor grad_h not None,
    torch.Tensor grad_c not None,
    torch.Tensor gates not None,
    torch.Tensor new_c not None,
    torch.Tensor d_gates not None,
    torch.Tensor d_c not None,
):
    check_all(gates, grad_h, grad_c, new_c, d_c)
    check_all(d_gates, d_c)
    cdef Launch launch = Launch(gates.cdata)
    backward_pass(launch, grad_h.cdata, grad_c.cdata, gates.cdata, new_c.cdata, d_gates.cdata, d_c.cdata)


def check_all(torch.Tensor gates, *others):
    """Raise unless `gates` is (batch, 3 state) and all others are (batch, state), as the kernels take them."""
    cdef torch.Tensor other
    check_data(gates.cdata, b"gates")
    for other in others:
        check_same_device(other.cdata, b"argument", gates.cdata, b"gates")
        check_data(other.cdata, b"argument")
        if other.dtype != gates.dtype or not other.is_contiguous() or not gates.is_contiguous():
            raise ValueError("the tensors must be contiguous and of one dtype")
        if other.dim() != 2 or gates.shape != (other.shape[0], 3 * other.shape[1]):
            raise ValueError(f"gates must be (batch, 3 state) and the others (batch, state), got {other.shape}")
