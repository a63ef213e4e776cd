"""Checks that the cell on the GPU computes what plain PyTorch computes on the CPU in float64."""

import torch
from torch import Tensor

from experiments import load
from interop.cli import CommandError

from .ways import same_cells

# Forward and backward round several times: to 10, 7 and 23 bits behind the point; sums of some hundred products.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5, torch.float16: 2e-2, torch.bfloat16: 1.2e-1}
SHAPES = ((16, 32, 128), (3, 5, 7), (2, 1, 17), (64, 100, 257))


def check(device: torch.device) -> dict[str, float]:
    """The largest difference from float64 on the CPU, relative to the largest value; by dtype."""
    return {
        str(dtype).removeprefix("torch."): max(_largest(shape, dtype, tolerance, device) for shape in SHAPES)
        for dtype, tolerance in TOLERANCE.items()
    }


def _largest(shape: tuple[int, int, int], dtype: torch.dtype, tolerance: float, device: torch.device) -> float:
    lltm = load("lltm", "agreement")
    _, features, state = shape
    cells = same_cells(features, state, dtype=torch.float64)
    # What the GPU gets, the CPU gets too: rounded to the dtype.
    inputs = [given.detach().to(dtype).double().requires_grad_() for given in lltm.inputs(*shape, torch.float64)]
    for cell in cells.values():
        cell.load_state_dict({name: value.to(dtype).double() for name, value in cells["Python"].state_dict().items()})
    expected = lltm.evaluate(cells["Python"], inputs)
    cell = cells["Cython CUDA"].to(device, dtype)
    got = lltm.evaluate(cell, [given.detach().to(device, dtype).requires_grad_() for given in inputs])
    return max(_difference(name, a, b, tolerance) for name, a, b in zip(lltm.NAMES, got, expected, strict=True))


def _difference(name: str, got: Tensor, expected: Tensor, tolerance: float) -> float:
    difference = ((got.detach().cpu().double() - expected).abs().max() / expected.abs().max()).item()
    if not difference <= tolerance:  # so that nan fails as well
        raise CommandError(f"the CUDA cell disagrees with Python: {name} by {difference:.1e} in {got.dtype}")
    return difference
