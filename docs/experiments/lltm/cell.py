"""What all forms of the LLTM cell have in common: their parameters, and how these start."""

import torch
from torch import Tensor, nn


class Cell(nn.Module):
    """A recurrent cell without a forget gate, after the C++ extension tutorial of PyTorch (2018).

    Parameters
    ----------
    features, state
        The widths of the input x (batch, features), and of h and c (batch, state).
    **options
        ``dtype`` and ``device`` of the parameters.
    """

    def __init__(self, features: int, state: int, **options):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(3 * state, features + state, **options))
        self.bias = nn.Parameter(torch.empty(3 * state, **options))
        for parameter in (self.weight, self.bias):
            nn.init.uniform_(parameter, -(state**-0.5), state**-0.5)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """The next h and c."""
        raise NotImplementedError
