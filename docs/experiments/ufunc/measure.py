"""Measures two elementwise functions of two tensors, made in five ways, in microseconds."""

from collections.abc import Callable
from statistics import median, quantiles

import numpy as np
import torch
from torch.utils.benchmark import Timer

from interop.cli import CommandError
from interop.experiments import building

NAME = "ufunc"
FLAGS = building.LOOP_FLAGS  # of the loops by hand; the others are compiled alike
SIZES = {"1k": 1_000, "100k": 100_000, "10M": 10_000_000}
FUNCTIONS = {"add": "x + y", "fused": "x y + x / (1 + y y)"}
WAYS = ("torch", "torch.compile", "at.elementwise", "loop by hand", "@cython.ufunc")


def plain(what: str) -> Callable:
    """The function in torch's own operators."""
    return {"add": torch.add, "fused": lambda x, y: x * y + x / (1 + y * y)}[what]


def ways(what: str) -> dict[str, Callable]:
    """Each way to compute the function `what`, of tensors, or of arrays for NumPy."""
    cython, numpy = (building.native(NAME, f"ufunc_{kind}") for kind in ("cython", "numpy"))
    return {
        "torch": plain(what),
        "torch.compile": torch.compile(plain(what), fullgraph=True, dynamic=False),
        "at.elementwise": getattr(cython, what),
        "loop by hand": getattr(cython, f"{what}_by_hand"),
        "@cython.ufunc": getattr(numpy, what),
    }


def arguments(way: str, n: int) -> tuple:
    """Two arguments of n numbers, equal for all ways."""
    generator = torch.Generator().manual_seed(0)
    pair = tuple(torch.randn(n, generator=generator) for _ in range(2))
    return tuple(x.numpy() for x in pair) if way == "@cython.ufunc" else pair


def check() -> None:
    """Raise unless all ways agree."""
    for what in FUNCTIONS:
        expected = plain(what)(*arguments("torch", 1000))
        for way, function in ways(what).items():
            result = function(*arguments(way, 1000))
            result = torch.from_numpy(result) if isinstance(result, np.ndarray) else result
            if not torch.allclose(result, expected, rtol=1e-5, atol=1e-6):
                raise CommandError(f"{way} disagrees with torch on {FUNCTIONS[what]}")


def times(rounds: int, seconds: float, shown: Callable[[str], None]) -> dict:
    """Microseconds of a call, by function, size and way: median and quartiles of blocks that take turns."""
    result = {}
    for what in FUNCTIONS:
        for size, n in SIZES.items():
            torch.compiler.reset()
            timers = {}
            for way, function in ways(what).items():
                names = {"f": function, "a": arguments(way, n)}
                function(*names["a"])
                timers[way] = Timer("f(*a)", globals=names, num_threads=torch.get_num_threads())
            number = {way: max(1, int(seconds / timer.timeit(2).mean)) for way, timer in timers.items()}
            blocks = {way: [] for way in timers}
            for _ in range(rounds):
                for way, timer in timers.items():
                    blocks[way].append(timer.timeit(number[way]).mean * 1e6)
            result.setdefault(what, {})[size] = {way: _summary(values) for way, values in blocks.items()}
            shown(f"{FUNCTIONS[what]}, {size}")
    return result


def _summary(values: list[float]) -> dict:
    low, _, high = quantiles(values)
    return {"median": round(median(values), 3), "quartiles": [round(low, 3), round(high, 3)]}
