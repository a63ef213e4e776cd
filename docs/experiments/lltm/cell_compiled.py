"""The LLTM cell in plain PyTorch, through torch.compile."""

import torch
from torch import Tensor

from .cell_python import PythonCell


class CompiledCell(PythonCell):
    """Forward and backward are what torch.compile makes of PythonCell, for each shape and dtype anew."""

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        return _forward(self, x, h, c)


# dynamic=False: code for these shapes only, which is the fastest, also after other shapes were seen.
_forward = torch.compile(PythonCell.forward, dynamic=False, fullgraph=True)
