"""Trains the LLTM with the kernels of each way: all from the same start, on the same text."""

from collections.abc import Callable

import torch

from experiments import load
from interop.cli import CommandError

from . import ways

model, data = load("lltm", "model"), load("lltm", "data")
PYTHON = "Python"
"""The cell in plain PyTorch, with autograd's own gradients."""

TOLERANCE = 1e-3
"""The maximum difference of the last losses, in nats: the sum of float32 numbers depends on their order."""


def train(settings: dict, shown: Callable[[str], None]) -> dict[str, list[float]]:
    """The loss of each way at each step; CommandError if one ends elsewhere than the others."""
    text = data.default()
    torch.manual_seed(0)
    sizes = len(text.alphabet), settings["features"], settings["state"]
    cells = {PYTHON: load("lltm", "cell_python").PythonCell} | ways.cells()
    models = {way: model.CharacterModel(cell, *sizes) for way, cell in cells.items()}
    for one in models.values():
        one.load_state_dict(models[PYTHON].state_dict())
    batches = text.batches(settings["batch"], settings["length"], settings["steps"])
    losses = model.train(models, batches, lambda _: shown(""))
    for way, found in losses.items():
        if not abs(found[-1] - losses[PYTHON][-1]) <= TOLERANCE:  # so that nan fails as well
            raise CommandError(f"{way}: the loss after training is {found[-1]}, and in Python {losses[PYTHON][-1]}")
    return losses
