"""Measures two elementwise functions of two tensors, made in five ways, in microseconds."""

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np
import torch
from torch.utils.benchmark import Timer

import interop
from experiments.harness import building
from experiments.harness.calls import summary
from interop.cli import CommandError

NAME = "ufunc"
FLAGS = building.LOOP_FLAGS  # of the loops by hand; the others are compiled alike
LARGEST = "10M"
"""The size that is computed into an existing result, too."""
SIZES = {"1k": 1_000, "100k": 100_000, LARGEST: 10_000_000}
FUNCTIONS = {"add": "x + y", "fused": "x y + x / (1 + y y)"}
COMPILED = {"elementwise": "into", "loop by hand": "by_hand_into"}
"""The ways whose loops the C++ compiler makes, by the end of the function's name."""
WAYS = ("torch", "torch.compile", "elementwise", "loop by hand", "@cython.ufunc")


def plain(what: str) -> Callable:
    """The function in torch's own operators."""
    return {"add": torch.add, "fused": lambda x, y: x * y + x / (1 + y * y)}[what]


def ways(what: str) -> dict[str, Callable]:
    """Each way to compute the function `what`, of tensors, or of arrays for NumPy."""
    cython, numpy = (building.native(NAME, f"ufunc_{kind}") for kind in ("cython", "numpy"))
    return {
        "torch": plain(what),
        "torch.compile": torch.compile(plain(what), fullgraph=True, dynamic=False),
        "elementwise": getattr(cython, what),
        "loop by hand": getattr(cython, f"{what}_by_hand"),
        "@cython.ufunc": getattr(numpy, what),
    }


def plain_into(what: str) -> Callable:
    """The same with a third argument that takes the result. torch allocates its intermediate results at each call."""
    return {
        "add": lambda x, y, out: torch.add(x, y, out=out),
        "fused": lambda x, y, out: torch.add(x * y, x / (1 + y * y), out=out),
    }[what]


def ways_into(what: str) -> dict[str, Callable]:
    """The same ways as `ways`, each with a third argument that takes the result."""
    cython, numpy = (building.native(NAME, f"ufunc_{kind}") for kind in ("cython", "numpy"))
    return {
        "torch": plain_into(what),
        "torch.compile": torch.compile(plain_into(what), fullgraph=True, dynamic=False),
        "elementwise": getattr(cython, f"{what}_into"),
        "loop by hand": getattr(cython, f"{what}_by_hand_into"),
        "@cython.ufunc": getattr(numpy, what),
    }


def find_clang() -> str:
    """The path of the newest clang, or an empty string."""
    names = (*(f"clang++-{number}" for number in range(40, 13, -1)), "clang++")
    return next((path for name in names if (path := shutil.which(name))), "")


def compiled_by(compiler: str) -> ModuleType:
    """The module of Cython, compiled by another compiler with the same flags, under another name."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, CXX=compiler):
        source = Path(shutil.copy(building.FOLDER / NAME / "ufunc_cython.pyx", Path(folder, "ufunc_clang.pyx")))
        return interop.load(source, extra_compile_args=FLAGS)


def arguments(way: str, n: int) -> tuple:
    """Two arguments of n numbers, equal for all ways."""
    generator = torch.Generator().manual_seed(0)
    pair = tuple(torch.randn(n, generator=generator) for _ in range(2))
    return tuple(x.numpy() for x in pair) if way == "@cython.ufunc" else pair


def result_like(x: torch.Tensor | np.ndarray) -> torch.Tensor | np.ndarray:
    """A result to compute into, of pages that the system has handed out."""
    return x.copy() if isinstance(x, np.ndarray) else x.clone()


def check() -> None:
    """Raise unless all ways agree."""
    for what in FUNCTIONS:
        expected = plain(what)(*arguments("torch", 1000))
        into = ways_into(what)
        for way, function in ways(what).items():
            given = arguments(way, 1000)
            result = result_like(given[0])
            into[way](*given, result)
            for how, found in (("", function(*given)), (" into an existing result", result)):
                if not torch.allclose(torch.as_tensor(found), expected, rtol=1e-5, atol=1e-6):
                    raise CommandError(f"{way}{how} disagrees with torch on {FUNCTIONS[what]}")


def times(rounds: int, seconds: float, shown: Callable[[str], None]) -> dict:
    """Microseconds of a call, by function, size and way: median and quartiles of blocks that take turns."""
    result = {}
    for what in FUNCTIONS:
        for size, n in SIZES.items():
            calls = {way: (function, arguments(way, n)) for way, function in ways(what).items()}
            result.setdefault(what, {})[size] = _take_turns(calls, rounds, seconds)
            shown(f"{FUNCTIONS[what]}, {size}")
    return result


def into(rounds: int, seconds: float, shown: Callable[[str], None]) -> dict:
    """The same of calls with the largest size into a result that is there, by function and way."""
    result = {}
    for what in FUNCTIONS:
        calls = {}
        for way, function in ways_into(what).items():
            given = arguments(way, SIZES[LARGEST])
            calls[way] = function, (*given, result_like(given[0]))
        result[what] = _take_turns(calls, rounds, seconds)
        shown(f"{FUNCTIONS[what]}, {LARGEST}, into an existing result")
    return result


def clang(rounds: int, seconds: float, shown: Callable[[str], None]) -> dict:
    """The version of clang, and microseconds of calls of what it and the default compiler made, by function and size.

    An empty dictionary if there is no clang.
    """
    compiler = find_clang()
    if not compiler:
        return {}
    modules = {"default": building.native(NAME, "ufunc_cython"), "clang": compiled_by(compiler)}
    version = subprocess.check_output([compiler, "--version"], text=True).splitlines()[0]
    result = {"version": version, "times": {what: {} for what in FUNCTIONS}}
    for what in FUNCTIONS:
        for size, n in SIZES.items():
            given = arguments("torch", n)
            for way, end in COMPILED.items():
                getattr(modules["clang"], f"{what}_{end}")(*given, found := result_like(given[0]))
                if not torch.allclose(found, plain(what)(*given), rtol=1e-5, atol=1e-6):
                    raise CommandError(f"{way}, compiled by clang, disagrees with torch on {FUNCTIONS[what]}")
            calls = {
                f"{way}, {by}": (getattr(module, f"{what}_{end}"), (*given, result_like(given[0])))
                for way, end in COMPILED.items()
                for by, module in modules.items()
            }
            result["times"][what][size] = _take_turns(calls, rounds, seconds)
            shown(f"{FUNCTIONS[what]}, {size}, by clang too")
    return result


def faults(number: int = 3) -> dict:
    """Page faults of a call with the largest size that makes its result, by function and way."""
    result = {}
    for what in FUNCTIONS:
        torch.compiler.reset()
        result[what] = {}
        for way, function in ways(what).items():
            given = arguments(way, SIZES[LARGEST])
            function(*given)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            for _ in range(number):
                function(*given)
            result[what][way] = round((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / number)
    return result


def _take_turns(calls: dict[str, tuple[Callable, tuple]], rounds: int, seconds: float) -> dict[str, dict]:
    torch.compiler.reset()
    timers = {}
    for way, (function, given) in calls.items():
        function(*given)
        timers[way] = Timer("f(*a)", globals={"f": function, "a": given}, num_threads=torch.get_num_threads())
    number = {way: max(1, int(seconds / timer.timeit(2).mean)) for way, timer in timers.items()}
    blocks = {way: [] for way in timers}
    for _ in range(rounds):
        for way, timer in timers.items():
            blocks[way].append(timer.timeit(number[way]).mean * 1e6)
    return {way: summary(values, 3) for way, values in blocks.items()}
