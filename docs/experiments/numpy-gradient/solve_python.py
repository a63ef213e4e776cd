"""The same function in Python: as an autograd.Function, with two kinds of conversions, by with_arrays, and by torch."""

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

import interop


class _Solve(torch.autograd.Function):
    """x of A x = b; a subclass says how tensors become arrays, and arrays tensors."""

    @classmethod
    def solve(cls, lower: Tensor, diagonal: Tensor, upper: Tensor, b: Tensor) -> Tensor:
        rows = np.zeros((3, b.numel()), cls.to_array(b).dtype)
        rows[0, 1:] = cls.to_array(upper)
        rows[1] = cls.to_array(diagonal)
        rows[2, :-1] = cls.to_array(lower)
        solution = scipy.linalg.solve_banded((1, 1), rows, cls.to_array(b), overwrite_ab=True, check_finite=False)
        return cls.to_tensor(solution)

    @staticmethod
    def setup_context(ctx, inputs, output):
        lower, diagonal, upper, _ = inputs
        ctx.save_for_backward(lower, diagonal, upper, output)

    @classmethod
    def gradients(cls, ctx, grad):
        lower, diagonal, upper, x = ctx.saved_tensors
        # By the function itself and not by SciPy, so that it is part of the graph where one is recorded.
        by_b = cls.apply(upper, diagonal, lower, grad)
        needs = ctx.needs_input_grad
        return (
            -by_b[1:] * x[:-1] if needs[0] else None,
            -by_b * x if needs[1] else None,
            -by_b[:-1] * x[1:] if needs[2] else None,
            by_b,
        )


class SolveNumpy(_Solve):
    """With torch's own conversions."""

    to_array = staticmethod(lambda tensor: tensor.detach().numpy())
    to_tensor = staticmethod(torch.from_numpy)

    @staticmethod
    def forward(lower: Tensor, diagonal: Tensor, upper: Tensor, b: Tensor) -> Tensor:
        """The solution."""
        return SolveNumpy.solve(lower, diagonal, upper, b)

    @staticmethod
    def backward(ctx, grad: Tensor):
        """The gradients of the three diagonals and of b."""
        return SolveNumpy.gradients(ctx, grad)


class SolveInterop(_Solve):
    """With those of interop."""

    to_array = staticmethod(lambda tensor: interop.to_numpy(tensor, readonly=True))
    to_tensor = staticmethod(interop.from_numpy)

    @staticmethod
    def forward(lower: Tensor, diagonal: Tensor, upper: Tensor, b: Tensor) -> Tensor:
        """The solution."""
        return SolveInterop.solve(lower, diagonal, upper, b)

    @staticmethod
    def backward(ctx, grad: Tensor):
        """The gradients of the three diagonals and of b."""
        return SolveInterop.gradients(ctx, grad)


def _of_arrays(lower: np.ndarray, diagonal: np.ndarray, upper: np.ndarray, b: np.ndarray) -> np.ndarray:
    rows = np.zeros((3, b.size), b.dtype)
    rows[0, 1:], rows[1], rows[2, :-1] = upper, diagonal, lower
    return scipy.linalg.solve_banded((1, 1), rows, b, overwrite_ab=True, check_finite=False)


def _vjp(grad: Tensor, x: Tensor, lower: Tensor, diagonal: Tensor, upper: Tensor, _: Tensor) -> tuple[Tensor, ...]:
    by_b = wrapped(upper, diagonal, lower, grad)
    return -by_b[1:] * x[:-1], -by_b * x, -by_b[:-1] * x[1:], by_b


wrapped = interop.with_arrays(_of_arrays, vjp=_vjp)
"""The function on arrays with its gradient. No autograd.Function is written for it."""


def dense(lower: Tensor, diagonal: Tensor, upper: Tensor, b: Tensor) -> Tensor:
    """With torch alone, which has no solver for three diagonals: of the whole matrix."""
    matrix = torch.diag(diagonal) + torch.diag(lower, -1) + torch.diag(upper, 1)
    return torch.linalg.solve(matrix, b)
