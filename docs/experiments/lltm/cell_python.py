"""The LLTM cell in plain Python, with autograd's own backward."""

import torch
from torch import Tensor
from torch.nn import functional

from .cell import Cell


class PythonCell(Cell):
    """The cell as one writes it in PyTorch. The others must give what this gives."""

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        gates = functional.linear(torch.cat([h, x], 1), self.weight, self.bias)
        i, o, z = gates.chunk(3, 1)
        new_c = c + functional.elu(z) * torch.sigmoid(i)
        return torch.tanh(new_c) * torch.sigmoid(o), new_c
