"""Measures calls, in nanoseconds and in instructions, and translating and compiling, in seconds."""

import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.utils.cpp_extension import include_paths

from interop.build import CXX_FLAGS, Extension, cythonize
from interop.experiments import FOLDER, building, calls

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
    """Nanoseconds of each call, by what it does and how: see `calls.times`."""
    names = modules() | {"x": torch.ones(3)}
    timers = {key: calls.timer(statement, names) for key, (_, statement) in CALLS.items()}
    return calls.times(timers, rounds, number, shown)


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
    """Instructions of each call, from map() into the function and back with its result: see `calls.instructions`."""
    files = {name: module.__spec__.origin for name, module in modules().items()}
    loads = "\n".join(f"{name} = load({name!r}, {path!r})" for name, path in files.items())
    loops = "".join(LOOP.format(function=function, count=count) for function, _ in CALLS.values())
    return calls.instructions(COUNTED.format(loads=loads, loops=loops), list(CALLS), count)


def compiling(rounds: int, shown: Callable[[str], None]) -> dict[str, float]:
    """Seconds of g++ -O2 for the module of each kind, given what its build gives it: the best of `rounds`."""
    best = {}
    with tempfile.TemporaryDirectory() as folder:
        path = FOLDER / NAME / "crossing_cython.pyx"
        (translated,) = cythonize([Extension("crossing_cython", [str(path)])], build_dir=folder, force=True, quiet=True)
        sources = {
            "Cython": (translated.sources[0], translated.include_dirs),
            "pybind11": (FOLDER / NAME / "crossing_pybind11.cpp", include_paths()),
        }
        for _ in range(rounds):
            for how, (source, includes) in sources.items():
                flags = [*CXX_FLAGS, "-O2", "-g0", "-fPIC", f"-DTORCH_EXTENSION_NAME=crossing_{how.lower()}", "-c"]
                flags += [f"-I{path}" for path in (*includes, sysconfig.get_path("include"))]
                seconds = _seconds(
                    lambda: subprocess.run(["c++", *flags, str(source), "-o", f"{folder}/out.o"], check=True)  # noqa: B023
                )
                best[how] = min(best.get(how, seconds), seconds)
                shown(how)
    return {how: round(seconds, 2) for how, seconds in best.items()}


TRANSLATED = {  # what Cython is given, by what it cimports
    "nothing": "def twice(x):\n    return x + x\n",
    "torch and ATen": "cimport torch\ncimport ATen as at\n\n"
    "def twice(torch.Tensor x not None):\n    return torch.wrap(at.add(x.cdata, x.cdata))\n",
}


def translating(rounds: int, shown: Callable[[str], None]) -> dict[str, float]:
    """Seconds of `cythonize` for a module with and without our declarations: the best of `rounds`."""
    best = {}
    for number in range(rounds):
        for what, text in TRANSLATED.items():
            with tempfile.TemporaryDirectory() as folder:
                source = Path(folder, f"translated_{number}.pyx")
                source.write_text(text)
                extension = Extension(source.stem, [str(source)])
                seconds = _seconds(lambda: cythonize([extension], build_dir=folder, force=True, quiet=True))  # noqa: B023
                best[what] = min(best.get(what, seconds), seconds)
                shown(what)
    return {what: round(seconds, 2) for what, seconds in best.items()}


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
