"""The ways to search, by the names that tables, plots and results call them."""

import numpy as np
import torch
from torch import Tensor

from experiments.harness import building

from . import search_torch

NAME = "monotonic-alignment"
FLAGS = ["-O3", "-g0"]
"""The flags of both ways. The usual core is built with -O3, as Python's own flags say. No flag names a processor."""


def usual(scores: Tensor, text_lengths: Tensor, frame_lengths: Tensor, *, frames_first: bool = False) -> Tensor:
    """The usual route: to NumPy, a copy that the core writes its totals into, and back.

    `scores` are [batch, text, frames], or [batch, frames, text] if `frames_first`; so is the mask.
    """
    core = building.native(NAME, "search_usual")
    totals = scores.data.cpu().numpy().astype(np.float32)
    path = np.zeros(totals.shape, dtype=np.int32)
    lengths = [lengths.data.cpu().numpy().astype(np.int32) for lengths in (text_lengths, frame_lengths)]
    (core.frames_first if frames_first else core.texts_first)(path, totals, *lengths)
    return torch.from_numpy(path).to(device=scores.device, dtype=torch.int32)


def cython(scores: Tensor, text_lengths: Tensor, frame_lengths: Tensor) -> Tensor:
    """The search on tensors, called as a function of its module."""
    return building.native(NAME, "search_cython").search(scores, text_lengths, frame_lengths)


def op(scores: Tensor, text_lengths: Tensor, frame_lengths: Tensor) -> Tensor:
    """The same, called as an operator of torch, which torch.compile can have in its graphs."""
    building.native(NAME, "search_cython")  # registers it
    return torch.ops.interop_experiments.monotonic_alignment(scores, text_lengths, frame_lengths)


def pytorch(scores: Tensor, text_lengths: Tensor, frame_lengths: Tensor) -> Tensor:
    """The search in plain PyTorch."""
    return search_torch.search(scores, text_lengths, frame_lengths)


SEARCHES = {"NumPy route": usual, "Cython": cython, "Cython, called as an op": op, "PyTorch": pytorch}
"""The ways that take tensors and return a tensor."""

WAYS = ("NumPy route", "its core alone", *(way for way in SEARCHES if way != "NumPy route"))
