"""Measures single calls: their nanoseconds, in blocks that take turns, and their instructions, with callgrind."""

import re
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from pathlib import Path
from statistics import median, quantiles
from types import ModuleType
from typing import Literal

import torch
from torch.utils.benchmark import Timer

from experiments import variables
from experiments.harness.display import progress, say, waiting

__all__ = [
    "UNCOUNTED",
    "count_if_possible",
    "instructions",
    "measured",
    "run_counted",
    "run_iterators",
    "summary",
    "timer",
    "times",
]

Key = tuple[str, str]
"""What a call does, and how."""

UNCOUNTED = 100
"""How often a function is called before its instructions are counted."""


def measured(measure: ModuleType, settings: dict, quick: bool, how_long: str) -> dict:
    """The "times" and, unless the run is quick, the "instructions" of the functions of these names in `measure`."""
    with progress("timing", settings["rounds"]) as shown:
        found = measure.times(settings["rounds"], settings["calls"], shown)
    return {"times": found, "instructions": {} if quick else count_if_possible(measure.instructions, how_long)}


def timer(statement: str, names: dict, setup: str = "pass") -> Timer:
    """Times `statement`, in which `names` are known, on one thread; `setup` runs before each block of calls."""
    return Timer(statement, setup, globals=names, num_threads=1)


def times(
    timers: dict[Key, Timer], rounds: int, number: int, shown: Callable[[str], None]
) -> dict[str, dict[str, dict]]:
    """Nanoseconds of each call: `summary` of `rounds` blocks of `number` calls that take turns."""
    blocks = {key: [] for key in timers}
    for _ in range(rounds):
        for key, one in timers.items():
            blocks[key].append(one.timeit(number).mean * 1e9)
        shown("")
    result = {what: {} for what, _ in timers}
    for (what, how), values in blocks.items():
        result[what][how] = summary(values)
    return result


def summary(values: list[float], digits: int = 1, method: Literal["exclusive", "inclusive"] = "exclusive") -> dict:
    """Median and quartiles of measured values, as they go into a result."""
    low, _, high = quantiles(values, method=method) if len(values) > 1 else values * 3
    return {"median": round(median(values), digits), "quartiles": [round(low, digits), round(high, digits)]}


def instructions(name: str, keys: Iterable[Key], count: int) -> dict[str, dict[str, float]]:
    """Instructions of each call of the experiment `name`, by callgrind.

    A function ``run_below_callgrind(count)`` in its measure.py makes `count` calls of each with `run_counted`, in the
    order of `keys`.
    """
    code = f"from experiments import load\nload({name!r}, 'measure').run_below_callgrind({count})"
    # Random hashes would make dictionaries, and so the count, differ from run to run.
    environment = {"PYTHONHASHSEED": "0", "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"} | variables()
    result = {}
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--callgrind-out-file={folder}/out"]
        subprocess.run([*command, sys.executable, "-P", "-c", code], capture_output=True, env=environment, check=True)
        for number, (what, how) in enumerate(keys, 1):
            total = re.search(r"^(?:totals|summary): (\d+)", Path(folder, f"out.{number}").read_text(), re.MULTILINE)
            result.setdefault(what, {})[how] = round(int(total[1]) / count, 1)
    return result


def run_counted(function: Callable, arguments: Sequence[object], count: int) -> None:
    """Call `function` `count` times, and have the instructions written out: see `run_iterators`."""
    first, *others = arguments
    run_iterators(*(map(function, repeat(first, number), *map(repeat, others)) for number in (UNCOUNTED, count)))


def run_iterators(uncounted: Iterable[object], counted: Iterable[object]) -> None:
    """Exhaust two iterators that make calls, and have the instructions of the second one written out.

    They must make the calls with map(), from C. The interpreter's own loop would double the count of a small function.
    The count would also depend on how often the interpreter tries to specialise the call without success, which
    differs between functions and from run to run.
    """
    deque(uncounted, 0)
    torch._C._valgrind_toggle()
    deque(counted, 0)
    torch._C._valgrind_toggle_and_dump_stats()


def count_if_possible(count: Callable[[], dict], how_long: str) -> dict:
    """What `count`, which runs callgrind, gives; nothing where there is no valgrind, and says which."""
    if not shutil.which("valgrind"):
        say("instructions are not counted: valgrind is not installed")
        return {}
    with waiting(f"counting instructions with callgrind: {how_long}"):
        return count()
