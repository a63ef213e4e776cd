"""Checks that all classes do the same, and measures their calls: nanoseconds and instructions."""

from collections.abc import Callable
from itertools import islice, repeat

import torch

from experiments.harness import calls
from interop.cli import CommandError

from . import ways

CALLS = {  # what is done: the method, and whether it takes a tensor
    "make an instance": ("__init__", True),
    "numel": ("numel", False),
    "first element": ("first", False),
    "an operation, without the GIL": ("neg", False),
    "get the tensor": ("get", False),
    "assign a tensor": ("set", True),
}


def check() -> None:
    """Raise CommandError unless each class gives what it was given."""
    for way, kind in ways.classes().items():
        m = kind(torch.tensor([1.0, 2.0]))
        m.set(torch.tensor([3.0, 4.0, 5.0]))
        got = (m.numel(), m.first(), m.neg().tolist(), m.get().tolist())
        if got != (3, 3.0, [-3.0, -4.0, -5.0], [3.0, 4.0, 5.0]):
            raise CommandError(f"{way}: after set() of [3, 4, 5], numel, first, neg and get give {got}")


def cases() -> list[tuple[str, str]]:
    """What is measured: each call, in each way."""
    return [(what, way) for what in CALLS for way in ways.WAYS]


def times(rounds: int, number: int, shown: Callable[[str], None]) -> dict[str, dict[str, dict]]:
    """Nanoseconds of each call, by what it does and by way: see `calls.times`."""
    timers = {}
    for what, way in cases():
        function, *arguments = _call(what, way)
        names = {"f": function, **dict(zip("ab", arguments, strict=False))}
        timers[what, way] = calls.timer("f(a, b)" if len(arguments) > 1 else "f(a)", names)
    return calls.times(timers, rounds, number, shown)


def instructions(count: int = 2_000) -> dict[str, dict[str, float]]:
    """Instructions of each call: see `calls.instructions`."""
    return calls.instructions(ways.NAME, cases(), count)


def run_below_callgrind(count: int) -> None:
    """Make each call `count` times, and have its instructions written out."""
    for what, way in cases():
        function, *arguments = _call(what, way)
        results = map(function, *map(repeat, arguments))
        calls.run_iterators(islice(results, calls.UNCOUNTED), islice(results, count))


def _call(what: str, way: str) -> tuple:
    """A function and its arguments: the class, or one of its methods with an instance."""
    kind, t = ways.classes()[way], torch.ones(3)
    method, takes_tensor = CALLS[what]
    if method == "__init__":
        return kind, t
    return getattr(kind, method), kind(t), *([t] if takes_tensor else [])
