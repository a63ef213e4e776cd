"""Measures calls, in nanoseconds and in instructions."""

from collections.abc import Callable
from itertools import islice, repeat

import torch

from experiments.harness import calls

from . import ways

ARGUMENTS = "x, gradient = arguments(what)"
CALL = "function(x)"
CALL_AND_GRADIENT = "grad(function(x), x, gradient)"


def times(rounds: int, number: int, shown: Callable[[str], None]) -> dict[str, dict[str, dict]]:
    """Nanoseconds of each call, by what it does and by the way it is written: see `calls.times`."""
    timers = {}
    for (what, way), function in ways.calls().items():
        names = {"function": function, "arguments": ways.arguments, "what": what, "grad": torch.autograd.grad}
        timers[what, way] = calls.timer(CALL_AND_GRADIENT if what in ways.BACKWARD else CALL, names, ARGUMENTS)
    return calls.times(timers, rounds, number, shown)


def instructions(count: int = 1_000) -> dict[str, dict[str, float]]:
    """Instructions of each call, by callgrind: see `calls.instructions`."""
    return calls.instructions(ways.NAME, ways.calls(), count)


def run_below_callgrind(count: int) -> None:
    """Make each call `count` times, and have its instructions written out."""
    for (what, _), function in ways.calls().items():
        x, gradient = ways.arguments(what)
        results = map(function, repeat(x))
        if what in ways.BACKWARD:
            results = map(torch.autograd.grad, results, repeat(x), repeat(gradient))
        calls.run_iterators(islice(results, calls.UNCOUNTED), islice(results, count))
