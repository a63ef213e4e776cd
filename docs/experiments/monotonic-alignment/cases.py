"""What is searched: batches of scores with lengths, as a model that learns to speak makes them."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Case:
    """The sizes of a batch, the layout of its scores in memory, and whether its items use all of them."""

    label: str
    batch: int
    texts: int
    frames: int
    ragged: bool = False
    frames_first: bool = False

    def inputs(self, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Scores, text lengths and frame lengths. The scores are [batch, text, frames], whatever their strides."""
        generator = torch.Generator().manual_seed(seed)
        # Squared distances, as of a normal distribution with unit variance.
        scores = torch.randn(self.batch, self.texts, self.frames, generator=generator).square_().mul_(-0.5)
        part = torch.ones(self.batch)
        if self.ragged:
            part = torch.linspace(1, 0.25, self.batch)  # longest first, as loaders sort them
        lengths = ((part * size).long().clamp(min=1) for size in (self.texts, self.frames))
        if self.frames_first:
            scores = scores.transpose(1, 2).contiguous().transpose(1, 2)
        return scores, *lengths


CASES = (
    Case("32 x 200 x 800", 32, 200, 800),
    Case("32 x 200 x 800, frames first", 32, 200, 800, frames_first=True),
    Case("32 x 200 x 800, ragged", 32, 200, 800, ragged=True),
    Case("16 x 60 x 300", 16, 60, 300),
    Case("1 x 200 x 800", 1, 200, 800),
)
