"""The version that is commonly copied, mistake by mistake, and what each gives."""

from collections.abc import Callable

import numpy as np
import scipy.linalg
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import ways

WORKS = "right"


def mistakes() -> dict[str, dict[str, str]]:
    """What each gives: ``outcome``, an error's type or whether the gradient is right, and ``message``."""
    return {text: _outcome(gradient) for text, gradient in CASES.items()}


def _outcome(gradient: Callable[[], tuple[Tensor, Tensor]]) -> dict[str, str]:
    try:
        got, expected = gradient()
    except Exception as error:  # which one it is, is the answer
        return {"outcome": type(error).__name__, "message": str(error).splitlines()[0]}
    if torch.allclose(got, expected):
        return {"outcome": WORKS, "message": ""}
    return {"outcome": "wrong", "message": f"{_rounded(got)} where {_rounded(expected)} is right"}


def _rounded(values: Tensor) -> str:
    return str([round(value, 2) for value in values.tolist()])


def _arguments() -> list[Tensor]:
    """Of a system of three equations; the right-hand side requires a gradient."""
    values = ([1.0, 1.0], [4.0, 4.0, 4.0], [1.0, 1.0], [1.0, 2.0, 3.0])
    arguments = [torch.tensor(value, dtype=torch.float64) for value in values]
    arguments[-1].requires_grad_()
    return arguments


def _solved(lower: np.ndarray, diagonal: np.ndarray, upper: np.ndarray, b: np.ndarray) -> np.ndarray:
    rows = np.stack([np.append(0, upper), diagonal, np.append(lower, 0)])
    return scipy.linalg.solve_banded((1, 1), rows, b)


def _function(backward: Callable) -> Callable[..., Tensor]:
    class Copied(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *arguments):
            x = torch.from_numpy(_solved(*map(_detached, arguments)))
            ctx.save_for_backward(*arguments[:3], x)
            return x

    Copied.backward = staticmethod(backward)
    return Copied.apply


def _backward(array: Callable[[Tensor], np.ndarray]) -> Callable:
    def backward(ctx, grad):
        lower, diagonal, upper, _ = ctx.saved_tensors
        by_b = torch.from_numpy(_solved(array(upper), array(diagonal), array(lower), array(grad)))
        return None, None, None, by_b

    return backward


def _first(function: Callable) -> tuple[Tensor, Tensor]:
    """The gradient of a sum of squares, and the right one."""
    return tuple(
        torch.autograd.grad(one(*arguments).square().sum(), arguments[-1])[0]
        for one in (function, ways.reference())
        for arguments in [_arguments()]
    )


def _penalised(function: Callable, by_grad: bool = False) -> tuple[Tensor, Tensor]:
    """The gradient of a loss with a penalty on its gradient, for which that is differentiated again."""

    def gradient(one):
        arguments = _arguments()
        b = arguments[-1]
        loss = one(*arguments).square().sum()
        (by_b,) = torch.autograd.grad(loss, b, create_graph=True)
        penalised = loss + by_b.square().sum()
        if by_grad:
            return torch.autograd.grad(penalised, b)[0]
        penalised.backward()
        return b.grad

    return gradient(function), gradient(ways.reference())


def _no_node(array: Callable[[Tensor], np.ndarray]) -> Callable[..., Tensor]:
    return lambda *arguments: torch.from_numpy(_solved(*map(array, arguments)))


def _plain(tensor: Tensor) -> np.ndarray:
    return tensor.numpy()


def _detached(tensor: Tensor) -> np.ndarray:
    return tensor.detach().numpy()


CASES = {
    "no Function, `.numpy()`": lambda: _first(_no_node(_plain)),
    "no Function, `.detach().numpy()`": lambda: _first(_no_node(_detached)),
    "a Function, `.detach().numpy()`": lambda: _first(_function(_backward(_detached))),
    "the same, differentiated twice": lambda: _penalised(_function(_backward(_detached))),
    "`.numpy()` in its backward, differentiated twice": lambda: _penalised(_function(_backward(_plain))),
    "`@once_differentiable`, twice, by `backward()`": lambda: _penalised(
        _function(once_differentiable(_backward(_detached)))
    ),
    "`@once_differentiable`, twice, by `torch.autograd.grad`": lambda: _penalised(
        _function(once_differentiable(_backward(_detached))), by_grad=True
    ),
    "Cython, SciPy in backward, differentiated twice": lambda: _penalised(ways.native().once),
    "Cython, the node in backward, differentiated twice": lambda: _penalised(ways.native().by_scipy),
}
"""Each version corrects the one before, or tries to; the last one is right."""
