"""Measures forward and backward of each way, over sizes, and the conversions alone."""

from collections.abc import Callable

import torch

import interop
from experiments.harness import calls

from . import ways

SIZES = (10, 100, 1_000, 10_000, 100_000)
FORWARD, BACKWARD = "forward", "backward"
STATEMENTS = {
    FORWARD: "f(*arguments)",  # the graph is recorded
    BACKWARD: "torch.autograd.grad(x, arguments, gradient, retain_graph=True)",
}
CONVERSIONS = {
    ("an array of a tensor", "torch"): "t.numpy()",
    ("an array of a tensor", "interop"): "interop.to_numpy(t)",
    ("an array of one that requires grad", "torch"): "r.detach().numpy()",
    ("an array of one that requires grad", "interop"): "interop.to_numpy(r, readonly=True)",
    ("a tensor of an array", "torch"): "torch.from_numpy(a)",
    ("a tensor of an array", "interop"): "interop.from_numpy(a)",
}


def cases() -> list[tuple[str, str]]:
    """What is measured, and how: ``("forward, 10", way)``."""
    return [
        (f"{what}, {size}", way)
        for what in STATEMENTS
        for size in SIZES
        for way in ways.WAYS
        if way != ways.DENSE or size <= ways.DENSE_LIMIT
    ]


def times(rounds: int, shown: Callable[[str], None]) -> dict[str, dict[str, dict]]:
    """Nanoseconds of each case: see `calls.times`. A block lasts about as long for each size."""
    functions = ways.functions()
    result = {}
    for size in SIZES:
        given = ways.arguments(size)
        timers = {}
        for (what, way), statement in (((what, way), STATEMENTS[what]) for what in STATEMENTS for way in ways.WAYS):
            if (f"{what}, {size}", way) in cases():
                names = {"f": functions[way], "arguments": given, "torch": torch}
                names |= {"x": functions[way](*given), "gradient": torch.ones(size, dtype=torch.float64)}
                timers[f"{what}, {size}", way] = calls.timer(statement, names)
        result |= calls.times(timers, rounds, max(1, min(200, 20_000 // size)), lambda _: None)
        shown(f"{size} equations")
    return result


def conversions(rounds: int, number: int) -> dict[str, dict[str, dict]]:
    """Nanoseconds of the conversions alone, of ten elements."""
    t = torch.ones(10, dtype=torch.float64)
    names = {"t": t, "r": t.clone().requires_grad_(), "a": t.numpy(), "torch": torch, "interop": interop}
    timers = {key: calls.timer(statement, names) for key, statement in CONVERSIONS.items()}
    return calls.times(timers, rounds, number, lambda _: None)
