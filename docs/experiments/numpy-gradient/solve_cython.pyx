# distutils: language = c++
"""x of A x = b for a matrix of three diagonals, and its gradients, with SciPy: as autograd nodes in Cython."""
import numpy as np
import scipy.linalg

cimport ATen as at
cimport torch
from ATen cimport Tensor
from interop cimport const_accessor1, floating
from scipy.linalg.cython_lapack cimport dgtsv, sgtsv
from torch.autograd cimport Context, Function

from interop.bridges cimport from_numpy, to_numpy


cdef Tensor scipy_forward(
    Context& ctx, const Tensor& lower, const Tensor& diagonal, const Tensor& upper, const Tensor& b
) except * with gil:
    """By scipy.linalg.solve_banded, on arrays over the memory of the tensors."""
    check(lower, diagonal, upper, b)
    # Read-only arrays, because a tensor that requires grad gives no writable one, and these may require grad.
    rows = np.zeros((3, b.numel()), to_numpy(b, False, True).dtype)
    rows[0, 1:] = to_numpy(upper, False, True)
    rows[1] = to_numpy(diagonal, False, True)
    rows[2, :-1] = to_numpy(lower, False, True)
    solution = scipy.linalg.solve_banded(
        (1, 1), rows, to_numpy(b, False, True), overwrite_ab=True, check_finite=False)
    cdef Tensor x = from_numpy(solution)
    ctx.save_for_backward(lower, diagonal, upper, x)
    return x


cdef Tensor lapack_forward(
    Context& ctx, const Tensor& lower, const Tensor& diagonal, const Tensor& upper, const Tensor& b
) except * nogil:
    """By the function of LAPACK that solve_banded calls, which SciPy declares for Cython, without the GIL."""
    check(lower, diagonal, upper, b)
    # It works in the memory of its arguments.
    cdef Tensor d_l = lower.clone(at.MemoryFormat.Contiguous), d = diagonal.clone(at.MemoryFormat.Contiguous)
    cdef Tensor d_u = upper.clone(at.MemoryFormat.Contiguous), x = b.clone(at.MemoryFormat.Contiguous)
    cdef int n = <int>b.numel(), columns = 1, info = 0
    if n and b.scalar_type() == at.kDouble:
        dgtsv(&n, &columns, d_l.data_ptr[double](), d.data_ptr[double](), d_u.data_ptr[double](),
              x.data_ptr[double](), &n, &info)
    elif n:
        sgtsv(&n, &columns, d_l.data_ptr[float](), d.data_ptr[float](), d_u.data_ptr[float](),
              x.data_ptr[float](), &n, &info)
    if info:
        with gil:
            raise np.linalg.LinAlgError("singular matrix")
    ctx.save_for_backward(lower, diagonal, upper, x)
    return x


cdef int check(const Tensor& lower, const Tensor& diagonal, const Tensor& upper, const Tensor& b) except -1 nogil:
    """What a pointer is read of must be what LAPACK takes it for. The accessors check device, layout and dtype."""
    if b.scalar_type() == at.kDouble:
        check_each[double](lower, diagonal, upper, b)
    else:
        check_each[float](lower, diagonal, upper, b)
    if diagonal.numel() != b.numel() or lower.numel() + 1 != b.numel() or upper.numel() + 1 != b.numel():
        with gil:
            raise ValueError(
                "diagonal must have as many elements as b, lower and upper one less; got lower "
                f"{lower.numel()}, diagonal {diagonal.numel()}, upper {upper.numel()}, b {b.numel()}"
            )
    return 0


cdef int check_each(
    const Tensor& lower, const Tensor& diagonal, const Tensor& upper, const Tensor& b, floating _=0
) except -1 nogil:
    cdef const_accessor1[floating] seen
    seen = const_accessor1[floating](lower, b"lower")
    seen = const_accessor1[floating](diagonal, b"diagonal")
    seen = const_accessor1[floating](upper, b"upper")
    seen = const_accessor1[floating](b, b"b")
    return 0


cdef (Tensor, Tensor, Tensor, Tensor) gradients(Context& ctx, const Tensor& by_b) except * nogil:
    """With A^T by_b = grad: by_b for b, and -by_b x^T for A, of which the three diagonals are wanted."""
    cdef Tensor x = ctx.saved_tensor(3), by_lower, by_diagonal, by_upper
    if ctx.needs_input_grad(0):
        by_lower = at.neg(at.mul(by_b.narrow(0, 1, by_b.numel() - 1), x.narrow(0, 0, x.numel() - 1)))
    if ctx.needs_input_grad(1):
        by_diagonal = at.neg(at.mul(by_b, x))
    if ctx.needs_input_grad(2):
        by_upper = at.neg(at.mul(by_b.narrow(0, 0, by_b.numel() - 1), x.narrow(0, 1, x.numel() - 1)))
    return by_lower, by_diagonal, by_upper, by_b


# The gradient of b is such a solution itself, of the transposed matrix. Computed by the node and not by SciPy, it is
# part of the graph where one is recorded, so second derivatives come by themselves.
cdef (Tensor, Tensor, Tensor, Tensor) scipy_backward(Context& ctx, const Tensor& grad) except * nogil:
    return gradients(
        ctx, by_scipy_function.apply(ctx.saved_tensor(2), ctx.saved_tensor(1), ctx.saved_tensor(0), grad))


cdef (Tensor, Tensor, Tensor, Tensor) lapack_backward(Context& ctx, const Tensor& grad) except * nogil:
    return gradients(
        ctx, by_lapack_function.apply(ctx.saved_tensor(2), ctx.saved_tensor(1), ctx.saved_tensor(0), grad))


cdef (Tensor, Tensor, Tensor, Tensor) once_backward(Context& ctx, const Tensor& grad) except * with gil:
    """By SciPy itself, so it is no part of a graph. Where one is recorded, that is an error and not a wrong result."""
    if at.GradMode.is_enabled():
        raise RuntimeError(
            "the gradient of SolveOnce is computed by SciPy and has none itself: leave create_graph=True out, or call "
            "by_scipy, whose gradient has one"
        )
    rows = np.zeros((3, grad.numel()), to_numpy(grad).dtype)
    rows[0, 1:] = to_numpy(ctx.saved_tensor(0))
    rows[1] = to_numpy(ctx.saved_tensor(1))
    rows[2, :-1] = to_numpy(ctx.saved_tensor(2))
    return gradients(ctx, from_numpy(scipy.linalg.solve_banded((1, 1), rows, to_numpy(grad), overwrite_ab=True)))


cdef Function[Tensor] by_scipy_function, by_lapack_function, once_function
by_scipy_function.define("SolveByScipy", scipy_forward, scipy_backward)
by_lapack_function.define("SolveByLapack", lapack_forward, lapack_backward)
once_function.define("SolveOnce", scipy_forward, once_backward)


def by_scipy(
    torch.Tensor lower not None, torch.Tensor diagonal not None, torch.Tensor upper not None, torch.Tensor b not None
):
    """x, with gradients: SciPy is called from Cython."""
    return torch.wrap(by_scipy_function.apply(lower.cdata, diagonal.cdata, upper.cdata, b.cdata))


def by_lapack(
    torch.Tensor lower not None, torch.Tensor diagonal not None, torch.Tensor upper not None, torch.Tensor b not None
):
    """x, with gradients: LAPACK is called from Cython, without the GIL."""
    cdef Tensor x, d_l = lower.cdata, d = diagonal.cdata, d_u = upper.cdata, right = b.cdata
    with nogil:
        x = by_lapack_function.apply(d_l, d, d_u, right)
    return torch.wrap(x)


def once(
    torch.Tensor lower not None, torch.Tensor diagonal not None, torch.Tensor upper not None, torch.Tensor b not None
):
    """x, with gradients that have none."""
    return torch.wrap(once_function.apply(lower.cdata, diagonal.cdata, upper.cdata, b.cdata))
