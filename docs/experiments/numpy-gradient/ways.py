"""The forms of the function, and the check that they agree."""

from collections.abc import Callable
from types import ModuleType

import torch
from torch import Tensor

from experiments.harness import building
from interop.cli import CommandError

NAME = "numpy-gradient"
PYTHON, PYTHON_INTEROP, WRAPPED = "Python, .numpy()", "Python, interop", "Python, with_arrays"
CYTHON, LAPACK, DENSE = "Cython, SciPy", "Cython, LAPACK", "torch.linalg.solve"
WAYS = (PYTHON, PYTHON_INTEROP, WRAPPED, CYTHON, LAPACK, DENSE)
DENSE_LIMIT = 1000
"""The most equations for which a whole matrix is made."""


def native() -> ModuleType:
    """The compiled module."""
    return building.native(NAME, "solve_cython")


def functions() -> dict[str, Callable[..., Tensor]]:
    """Each way's function of the three diagonals and the right-hand side."""
    from . import solve_python

    found = (
        solve_python.SolveNumpy.apply,
        solve_python.SolveInterop.apply,
        solve_python.wrapped,
        native().by_scipy,
        native().by_lapack,
        solve_python.dense,
    )
    return dict(zip(WAYS, found, strict=True))


def reference() -> Callable[..., Tensor]:
    """torch's own."""
    return functions()[DENSE]


def arguments(size: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """A system that is well conditioned, because its diagonal outweighs the others; all require a gradient."""
    generator = torch.Generator().manual_seed(size)
    lower, diagonal, upper, b = (
        torch.rand(length, generator=generator, dtype=dtype) for length in (size - 1, size, size - 1, size)
    )
    return [one.requires_grad_() for one in (lower, diagonal + 3, upper, b)]


TOLERANCE = {torch.float64: 1e-13, torch.float32: 1e-5}


def check(size: int = 50) -> dict[str, dict[str, float | bool]]:
    """The largest difference of each way from torch's own, by dtype, and that gradcheck and gradgradcheck pass."""
    result = {}
    for way, function in functions().items():
        found = {}
        for dtype, tolerance in TOLERANCE.items():
            got, expected = (_evaluated(one, arguments(size, dtype)) for one in (function, reference()))
            difference = max(
                float((a - b).detach().abs().max() / b.detach().abs().max()) for a, b in zip(got, expected, strict=True)
            )
            if not difference <= tolerance:  # so that nan fails as well
                raise CommandError(f"{way} differs from torch by {difference:.1e} in {dtype}")
            found[str(dtype).removeprefix("torch.")] = difference
        small = tuple(arguments(4))
        for name in ("gradcheck", "gradgradcheck"):
            if not getattr(torch.autograd, name)(function, small, raise_exception=False):
                raise CommandError(f"{way} fails torch.autograd.{name}")
            found[name] = True
        result[way] = found
    return result


def _evaluated(function: Callable[..., Tensor], given: list[Tensor]) -> list[Tensor]:
    """The solution and the gradients."""
    x = function(*given)
    return [x, *torch.autograd.grad(x, given, torch.linspace(-1, 1, x.numel(), dtype=x.dtype))]
