"""Measures single calls: their nanoseconds, in blocks that take turns, and their instructions, with callgrind."""

import re
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from itertools import repeat
from pathlib import Path
from statistics import median, quantiles

import torch
from torch.utils.benchmark import Timer

from interop.experiments.display import say, waiting

__all__ = ["count_if_possible", "instructions", "run_counted", "timer", "times"]

Key = tuple[str, str]
"""What a call does, and how."""


def timer(statement: str, names: dict, setup: str = "pass") -> Timer:
    """Times `statement`, in which `names` are known, on one thread; `setup` runs before each block of calls."""
    return Timer(statement, setup, globals=names, num_threads=1)


def times(
    timers: dict[Key, Timer], rounds: int, number: int, shown: Callable[[str], None]
) -> dict[str, dict[str, dict]]:
    """Nanoseconds of each call: median and quartiles of `rounds` blocks of `number` calls that take turns."""
    blocks = {key: [] for key in timers}
    for _ in range(rounds):
        for key, one in timers.items():
            blocks[key].append(one.timeit(number).mean * 1e9)
        shown("")
    result = {what: {} for what, _ in timers}
    for (what, how), values in blocks.items():
        low, _, high = quantiles(values)
        result[what][how] = {"median": round(median(values), 1), "quartiles": [round(low, 1), round(high, 1)]}
    return result


def instructions(code: str, keys: list[Key], count: int) -> dict[str, dict[str, float]]:
    """Instructions of each call, when `code` makes `count` of each in the order of `keys`.

    Around each, `code` calls ``torch._C._valgrind_toggle()`` and ``_valgrind_toggle_and_dump_stats()``. It makes the
    calls with map(), from C. The interpreter's own loop would double the count of a small function and make it depend
    on how often it tries in vain to specialise the call, which differs between functions and from run to run.
    """
    # Random hashes would make dictionaries, and so the count, differ from run to run.
    environment = {"PYTHONHASHSEED": "0", "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    result = {what: {} for what, _ in keys}
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--callgrind-out-file={folder}/out"]
        subprocess.run([*command, sys.executable, "-P", "-c", code], capture_output=True, env=environment, check=True)
        for number, (what, how) in enumerate(keys, 1):
            total = re.search(r"^(?:totals|summary): (\d+)", Path(folder, f"out.{number}").read_text(), re.MULTILINE)
            result[what][how] = round(int(total[1]) / count, 1)
    return result


def run_counted(function: Callable, arguments: Sequence[object], count: int) -> None:
    """Call `function` `count` times in the way that `instructions` asks for, and before that 100 times uncounted."""
    first, *others = arguments
    deque(map(function, repeat(first, 100), *map(repeat, others)), 0)
    torch._C._valgrind_toggle()
    deque(map(function, repeat(first, count), *map(repeat, others)), 0)
    torch._C._valgrind_toggle_and_dump_stats()


def count_if_possible(count: Callable[[], dict], how_long: str) -> dict:
    """What `count`, which runs callgrind, gives; nothing where there is no valgrind, and says which."""
    if not shutil.which("valgrind"):
        say("instructions are not counted: valgrind is not installed")
        return {}
    with waiting(f"counting instructions with callgrind: {how_long}"):
        return count()
