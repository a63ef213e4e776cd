"""Measures calls, in nanoseconds and in instructions, and compiling, in seconds."""

import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles

import torch
from torch.utils.benchmark import Timer
from torch.utils.cpp_extension import include_paths

from interop.build import CXX_FLAGS
from interop.experiments import FOLDER, building
from interop.paths import get_include

NAME = "crossing"
FLAGS = [*CXX_FLAGS, "-O3", "-g0"]
"""Of the modules that are called: pybind11's code is inlined templates, which -O3 does most for."""
CALLS = {  # the function, and a call of it
    ("empty", "Cython"): ("crossing_cython.empty", "crossing_cython.empty(x)"),
    ("empty", "pybind11"): ("crossing_pybind11.empty", "crossing_pybind11.empty(x)"),
    ("numel", "Cython"): ("crossing_cython.numel", "crossing_cython.numel(x)"),
    ("numel", "pybind11"): ("crossing_pybind11.numel", "crossing_pybind11.numel(x)"),
    ("numel", "method"): ("torch.Tensor.numel", "x.numel()"),
}


def modules() -> dict:
    """What the statements above refer to."""
    return {name: building.native(NAME, name) for name in ("crossing_cython", "crossing_pybind11")}


def times(rounds: int, number: int, shown: Callable[[str], None]) -> dict[str, dict[str, dict]]:
    """Nanoseconds of each call, by what it does and how: median and quartiles of `rounds` blocks that take turns."""
    names = modules() | {"x": torch.ones(3)}
    timers = {key: Timer(statement, globals=names, num_threads=1) for key, (_, statement) in CALLS.items()}
    blocks = {key: [] for key in timers}
    for _ in range(rounds):
        for key, timer in timers.items():
            blocks[key].append(timer.timeit(number).mean * 1e9)
        shown("")
    result = {what: {} for what, _ in CALLS}
    for (what, how), values in blocks.items():
        low, _, high = quantiles(values)
        result[what][how] = {"median": round(median(values), 1), "quartiles": [round(low, 1), round(high, 1)]}
    return result


# map() calls the function from C. The interpreter's own loop would double the count and make it depend on how often it
# tries in vain to specialise the call, which differs between functions and from run to run.
COUNTED = """
import importlib.machinery, importlib.util
from collections import deque
from itertools import repeat
import torch
def load(name, path):
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, path, loader=loader))
    loader.exec_module(module)
    return module
{loads}
x = torch.ones(3)
{loops}
"""
LOOP = """
deque(map({function}, repeat(x, 100)), 0)
torch._C._valgrind_toggle()
deque(map({function}, repeat(x, {count})), 0)
torch._C._valgrind_toggle_and_dump_stats()
"""


def instructions(count: int = 20_000) -> dict[str, dict[str, float]]:
    """Instructions of each call, by callgrind: from map() into the function, and back with its result."""
    files = {name: module.__spec__.origin for name, module in modules().items()}
    loads = "\n".join(f"{name} = load({name!r}, {path!r})" for name, path in files.items())
    loops = "".join(LOOP.format(function=function, count=count) for function, _ in CALLS.values())
    # Random hashes would make dictionaries, and so the count, differ from run to run.
    environment = {"PYTHONHASHSEED": "0", "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    result = {what: {} for what, _ in CALLS}
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--callgrind-out-file={folder}/out"]
        code = COUNTED.format(loads=loads, loops=loops)
        subprocess.run([*command, sys.executable, "-P", "-c", code], capture_output=True, env=environment, check=True)
        for number, (what, how) in enumerate(CALLS, 1):
            total = re.search(r"^(?:totals|summary): (\d+)", Path(folder, f"out.{number}").read_text(), re.MULTILINE)
            result[what][how] = round(int(total[1]) / count, 1)
    return result


def compiling(rounds: int, shown: Callable[[str], None]) -> dict[str, float]:
    """Seconds of g++ for the module of each kind, and of Cython before it: the best of `rounds`, at -O2."""
    folder, generated = FOLDER / NAME, building.BUILD / NAME / "objects" / "crossing_cython.cpp"
    includes = [f"-I{path}" for path in (get_include(), *include_paths(), sysconfig.get_path("include"))]
    sources = {"Cython": generated, "pybind11": folder / "crossing_pybind11.cpp"}
    best = {}
    for _ in range(rounds):
        for how, source in sources.items():
            seconds = _compile(source, includes, how)
            best[how] = min(best.get(how, seconds), seconds)
            shown(how)
    return {how: round(seconds, 2) for how, seconds in best.items()}


def _compile(source: Path, includes: list[str], module: str) -> float:
    flags = [*CXX_FLAGS, "-O2", "-g0", "-fPIC", f"-DTORCH_EXTENSION_NAME={module}", "-c"]
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        subprocess.run(["c++", *flags, *includes, str(source), "-o", f"{folder}/out.o"], check=True)
        return time.perf_counter() - started
