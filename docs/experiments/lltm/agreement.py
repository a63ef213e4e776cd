"""Checks that all forms of the cell compute the same, forward and backward."""

from collections.abc import Sequence

import torch
from torch import Tensor

from interop.cli import CommandError

from .cell import Cell
from .ways import WAYS, same_cells

NAMES = ("h'", "c'", "grad x", "grad h", "grad c", "grad weight", "grad bias")

# Each result is a sum of some hundred products, in another order: a few hundred units in the last place of values
# around 1.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-13}


def check(batch: int, features: int, state: int, wanted: Sequence[str] = WAYS) -> dict[str, dict[str, float]]:
    """The largest difference of each way from Python, by dtype; CommandError if one is too large."""
    sizes = f"batch {batch}, features {features}, state {state}"
    differences = {}
    for dtype, tolerance in TOLERANCE.items():
        cells = same_cells(features, state, wanted, dtype=dtype)
        arguments = inputs(batch, features, state, dtype)
        expected = evaluate(cells["Python"], arguments)
        differences[str(dtype).removeprefix("torch.")] = {
            way: _compare(f"{way} disagrees with Python at {sizes}", evaluate(cell, arguments), expected, tolerance)
            for way, cell in cells.items()
            if way != "Python"
        }
    return differences


def check_gradients() -> None:
    """Compare the gradients of each way with numerical differences, at a small size; CommandError if they are off."""
    for way, cell in same_cells(4, 5, dtype=torch.float64).items():
        _gradcheck(way, cell, inputs(3, 4, 5, torch.float64))


def inputs(batch: int, features: int, state: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """x, h and c, all with gradients, as in the middle of a sequence."""
    return [torch.randn(batch, width, dtype=dtype, requires_grad=True) for width in (features, state, state)]


def evaluate(cell: Cell, arguments: list[Tensor]) -> list[Tensor]:
    """The results of `cell` and all gradients, in the order of NAMES."""
    outputs = cell(*arguments)
    weights = [torch.linspace(-1, 1, o.numel(), dtype=o.dtype).view_as(o).to(o) for o in outputs]
    return [*outputs, *torch.autograd.grad(outputs, [*arguments, cell.weight, cell.bias], weights)]


def _compare(message: str, got: list[Tensor], expected: list[Tensor], tolerance: float) -> float:
    largest = 0.0
    for name, a, b in zip(NAMES, got, expected, strict=True):
        # Relative to the largest value: a gradient of the weights is a sum over the batch.
        difference = ((a - b).abs().max() / b.abs().max()).item()
        if not difference <= tolerance:  # so that nan fails as well
            raise CommandError(f"{message}: {name} by {difference:.1e} in {b.dtype}")
        largest = max(largest, difference)
    return largest


def _gradcheck(way: str, cell: Cell, arguments: list[Tensor]) -> None:
    def function(x, h, c, weight, bias):
        return torch.func.functional_call(cell, {"weight": weight, "bias": bias}, (x, h, c))

    if not torch.autograd.gradcheck(function, [*arguments, cell.weight, cell.bias], raise_exception=False):
        raise CommandError(f"the gradients of {way} differ from numerical differences")
