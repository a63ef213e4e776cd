"""Checks that all classes do the same, and measures their calls."""

from collections.abc import Callable

import torch

from interop.cli import CommandError
from interop.experiments import calls

from . import ways

CALLS = {
    "make an instance": "kind(t)",
    "numel": "m.numel()",
    "first element": "m.first()",
    "an operation, without the GIL": "m.neg()",
    "get the tensor": "m.get()",
    "assign a tensor": "m.set(t)",
}


def check() -> None:
    """Raise CommandError unless each class gives what it was given."""
    for way, kind in ways.classes().items():
        m = kind(torch.tensor([1.0, 2.0]))
        m.set(torch.tensor([3.0, 4.0, 5.0]))
        got = (m.numel(), m.first(), m.neg().tolist(), m.get().tolist())
        if got != (3, 3.0, [-3.0, -4.0, -5.0], [3.0, 4.0, 5.0]):
            raise CommandError(f"{way}: after set() of [3, 4, 5], numel, first, neg and get give {got}")


def times(rounds: int, number: int, shown: Callable[[str], None]) -> dict[str, dict[str, dict]]:
    """Nanoseconds of each call, by what it does and by way: see `calls.times`."""
    t = torch.ones(3)
    timers = {
        (what, way): calls.timer(statement, {"kind": kind, "m": kind(t), "t": t})
        for what, statement in CALLS.items()
        for way, kind in ways.classes().items()
    }
    return calls.times(timers, rounds, number, shown)
