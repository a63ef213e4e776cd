"""A character model around an LLTM cell, and its training."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional

from .cell import Cell


class CharacterModel(nn.Module):
    """Predicts each character of a text from those before it."""

    def __init__(self, cell: type[Cell], characters: int, features: int, state: int):
        super().__init__()
        self.state = state
        self.embedding = nn.Embedding(characters, features)
        self.cell = cell(features, state)
        self.head = nn.Linear(state, characters)

    def forward(self, indices: Tensor) -> Tensor:
        """Scores for the character after each: (length, batch) to (length, batch, characters)."""
        h = c = self.head.weight.new_zeros(indices.shape[1], self.state)
        states = []
        for x in self.embedding(indices):
            h, c = self.cell(x, h, c)
            states.append(h)
        return self.head(torch.stack(states))


def optimizer(model: CharacterModel, rate: float = 3e-3) -> torch.optim.Optimizer:
    """What changes the parameters of `model`."""
    return torch.optim.Adam(model.parameters(), rate)


def step(model: CharacterModel, by: torch.optim.Optimizer, batch: Tensor) -> float:
    """Learn one batch, as from `data.Text.batches`; the loss in nats per character."""
    loss = functional.cross_entropy(model(batch[:-1]).flatten(0, 1), batch[1:].flatten())
    by.zero_grad()
    loss.backward()
    # Without a forget gate c can grow along the sequence, and its gradients with it.
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    by.step()
    return loss.item()


def train(
    models: dict[str, CharacterModel], batches: Iterable[Tensor], shown: Callable[[str], None], rate: float = 3e-3
) -> dict[str, list[float]]:
    """Train all models on the same batches, step by step beside one another.

    Parameters
    ----------
    models
        By name, all with the same parameters.
    batches
        As from `data.Text.batches`.
    shown
        Called after each step with the losses in words.
    rate
        The learning rate.

    Returns
    -------
    dict
        The loss of each model at each step, in nats per character.
    """
    optimizers = {name: optimizer(model, rate) for name, model in models.items()}
    losses = {name: [] for name in models}
    for batch in batches:
        for name, model in models.items():
            losses[name].append(step(model, optimizers[name], batch))
        shown("  ".join(f"{name} {values[-1]:.3f}" for name, values in losses.items()))
    return losses
