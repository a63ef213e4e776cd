"""The LLTM cell as an operator that a compiled module registers."""

import torch
from torch import Tensor

from .cell import Cell


def registered_cell(name: str) -> type[Cell]:
    """A class of cells that call ``torch.ops.lltm.NAME``; the module that registers it has been imported."""
    operator = getattr(torch.ops.lltm, name).default

    class RegisteredCell(Cell):
        def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
            new_h, new_c, *_ = operator(x, h, c, self.weight, self.bias)
            return new_h, new_c

    return RegisteredCell
