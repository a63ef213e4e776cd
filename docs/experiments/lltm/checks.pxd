# What the operator lltm::fused accepts, and what it says to the rest; below, what stands for a gradient that does not
# come. Tensors of other devices and layouts do not come here: torch looks for a kernel of theirs.
cimport ATen as at
cimport torch
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool


cdef inline int check_argument(
    const char* name, const at.Tensor& tensor, at.ScalarType dtype, int64_t ndim
) except -1 nogil:
    if tensor.scalar_type() != dtype:
        with gil:
            raise TypeError(
                f"lltm::fused: argument '{name.decode()}' must have the dtype of h, {torch.wrap_dtype(dtype)}, "
                f"got {torch.wrap_dtype(tensor.scalar_type())}; convert it with .to({torch.wrap_dtype(dtype)})"
            )
    if tensor.dim() != ndim:
        with gil:
            raise ValueError(
                f"lltm::fused: argument '{name.decode()}' must have {ndim} dimension{'s' if ndim > 1 else ''}, "
                f"got {tensor.dim()} (sizes {tensor.sizes().vec()})"
            )
    return 0


cdef inline int check_sizes(
    const char* name, const at.Tensor& tensor, int64_t rows, int64_t columns
) except -1 nogil:
    if tensor.size(0) != rows or (columns >= 0 and tensor.size(1) != columns):
        with gil:
            wanted = [rows] if columns < 0 else [rows, columns]
            raise ValueError(
                f"lltm::fused: argument '{name.decode()}' must have sizes {wanted}, "
                f"got {tensor.sizes().vec()}; to h (batch, state) and x (batch, features) belong c (batch, state), "
                "weight (3 state, state + features) and bias (3 state)"
            )
    return 0


cdef inline int check_dtype(at.ScalarType dtype, cbool half) except -1 nogil:
    if dtype != at.kFloat and dtype != at.kDouble and dtype != at.kBFloat16 and not (half and dtype == at.kHalf):
        with gil:
            accepted = "torch.float32, torch.float64, torch.float16" if half else "torch.float32, torch.float64"
            raise TypeError(
                f"lltm::fused: argument 'h' must have dtype {accepted} or torch.bfloat16, "
                f"got {torch.wrap_dtype(dtype)}; convert all five with .to()"
            )
    return 0


cdef inline int check_forward(
    const at.Tensor& x,
    const at.Tensor& h,
    const at.Tensor& c,
    const at.Tensor& weight,
    const at.Tensor& bias,
    cbool half,
) except -1 nogil:
    """Raise unless the arguments fit together. `half` says whether float16 is accepted too."""
    cdef at.ScalarType dtype = h.scalar_type()
    cdef int64_t state
    check_dtype(dtype, half)
    check_argument(b"x", x, dtype, 2)
    check_argument(b"h", h, dtype, 2)
    check_argument(b"c", c, dtype, 2)
    check_argument(b"weight", weight, dtype, 2)
    check_argument(b"bias", bias, dtype, 1)
    state = h.size(1)
    check_sizes(b"x", x, h.size(0), x.size(1))
    check_sizes(b"c", c, h.size(0), state)
    check_sizes(b"weight", weight, 3 * state, state + x.size(1))
    check_sizes(b"bias", bias, 3 * state, -1)
    return 0


cdef inline int check_backward(
    const at.Tensor& grad_h,
    const at.Tensor& grad_c,
    const at.Tensor& x,
    const at.Tensor& h,
    const at.Tensor& gates,
    const at.Tensor& new_c,
    const at.Tensor& weight,
    cbool half,
) except -1 nogil:
    """The same for lltm::fused_backward, which anybody may call."""
    cdef at.ScalarType dtype = h.scalar_type()
    cdef int64_t batch, state
    check_dtype(dtype, half)
    check_argument(b"grad_h", grad_h, dtype, 2)
    check_argument(b"grad_c", grad_c, dtype, 2)
    check_argument(b"x", x, dtype, 2)
    check_argument(b"h", h, dtype, 2)
    check_argument(b"gates", gates, dtype, 2)
    check_argument(b"new_c", new_c, dtype, 2)
    check_argument(b"weight", weight, dtype, 2)
    batch, state = h.size(0), h.size(1)
    check_sizes(b"grad_h", grad_h, batch, state)
    check_sizes(b"grad_c", grad_c, batch, state)
    check_sizes(b"x", x, batch, x.size(1))
    check_sizes(b"gates", gates, batch, 3 * state)
    check_sizes(b"new_c", new_c, batch, state)
    check_sizes(b"weight", weight, 3 * state, state + x.size(1))
    return 0


cdef inline at.Tensor given_or_zeros(const at.Tensor& gradient, const at.Tensor& result) except * nogil:
    """The gradient for `result`, zeros if it is undefined. Autograd's own zeros are plain tensors, which an operator on
    DTensors rejects; these are a DTensor if `result` is one."""
    return gradient if gradient.defined() else at.zeros_like(result)
