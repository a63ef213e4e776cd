"""The LLTM cell in plain PyTorch, through torch.compile."""

import torch
import torch._dynamo.config
import torch._functorch.config
from torch import Tensor

from .cell_python import PythonCell


class CompiledCell(PythonCell):
    """Forward and backward are what torch.compile makes of PythonCell, for each shape, dtype and number of threads."""

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        return _forward(self, x, h, c)


# Or else backward reuses the memory of saved tensors, and rejects a graph that is kept, which timing.py does.
torch._functorch.config.donated_buffer = False
# How many of those one process may see; beyond 8, torch.compile would give up.
torch._dynamo.config.recompile_limit = 64

# dynamic=False: code for these shapes only, which is the fastest, also after other shapes were seen.
_forward = torch.compile(PythonCell.forward, dynamic=False, fullgraph=True)
