"""Measures calls, in nanoseconds and in instructions, and translating and compiling, in seconds."""

import importlib
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.utils.cpp_extension import include_paths

from experiments import FOLDER
from experiments.harness import building, calls
from interop.build import CXX_FLAGS, Extension, cythonize

from . import ways
from .ways import NAME

CALLS = {  # the function, and a call of it
    ("empty", "Cython"): ("crossing_cython.empty", "crossing_cython.empty(x)"),
    ("empty", "pybind11"): ("crossing_pybind11.empty", "crossing_pybind11.empty(x)"),
    ("numel", "Cython"): ("crossing_cython.numel", "crossing_cython.numel(x)"),
    ("numel", "pybind11"): ("crossing_pybind11.numel", "crossing_pybind11.numel(x)"),
    ("numel", "method"): ("torch.Tensor.numel", "x.numel()"),
}


def names() -> dict:
    """What the statements above refer to."""
    modules = {name: building.native(NAME, name) for name in ("crossing_cython", "crossing_pybind11")}
    return modules | {"x": torch.ones(3), "torch": torch}


def times(rounds: int, number: int, shown: Callable[[str], None]) -> dict[str, dict[str, dict]]:
    """Nanoseconds of each call, by what it does and how: see `calls.times`."""
    timers = {key: calls.timer(statement, names()) for key, (_, statement) in CALLS.items()}
    return calls.times(timers, rounds, number, shown)


def times_of_tensors(rounds: int, number: int, shown: Callable[[str], None]) -> dict[str, dict[str, dict]]:
    """Nanoseconds of each call with tensors, by how many they are and by way: see `calls.times`."""
    timers = {}
    for (what, way), function in ways.functions().items():
        tensors = dict(zip("abcdefgh", ways.tensors(ways.COUNTS[what]), strict=False))
        timers[what, way] = calls.timer(f"function({', '.join(tensors)})", tensors | {"function": function})
    return calls.times(timers, rounds, number, shown)


def instructions(count: int = 20_000) -> dict[str, dict[str, float]]:
    """Instructions of each call, from map() into the function and back with its result: see `calls.instructions`."""
    return calls.instructions(NAME, [*CALLS, *ways.functions()], count)


def run_below_callgrind(count: int) -> None:
    """Make each call `count` times, and have its instructions written out."""
    known = names()
    single = [(eval(function, known), [known["x"]]) for function, _ in CALLS.values()]
    several = [(function, ways.tensors(ways.COUNTS[what])) for (what, _), function in ways.functions().items()]
    for function, given in (*single, *several):
        calls.run_counted(function, given, count)


TRANSLATED = {  # what Cython is given, by what it cimports
    "nothing": "def twice(x):\n    return x + x\n",
    "torch and ATen": "cimport torch\ncimport ATen as at\n\n"
    "def twice(torch.Tensor x not None):\n    return torch.wrap(at.add(x.cdata, x.cdata))\n",
}


ADDING = """\
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <torch/csrc/utils/pybind.h>

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("twice", [](const at::Tensor& x) { return at::add(x, x); });
}
"""
"""What the last of `TRANSLATED` does, by pybind11."""


def compiling(rounds: int, shown: Callable[[str], None]) -> dict[str, float]:
    """Seconds of g++ -O2 for the module of each kind, given what its build gives it: the best of `rounds`."""
    best = {}
    with tempfile.TemporaryDirectory() as folder:
        commands = _compilations(Path(folder))
        for _ in range(rounds):
            for how, command in commands.items():
                seconds = _seconds(lambda: subprocess.run(command, check=True))  # noqa: B023
                best[how] = min(best.get(how, seconds), seconds)
                shown(how)
    return {how: round(seconds, 2) for how, seconds in best.items()}


def _compilations(folder: Path) -> dict[str, list[str]]:
    """The commands that compile, by what they compile. Sources that are made go into `folder`."""
    here = FOLDER / NAME
    (folder / "adding.pyx").write_text(TRANSLATED["torch and ATen"])
    (folder / "adding.cpp").write_text(ADDING)
    extensions = [Extension("crossing_cython", [str(here / "crossing_cython.pyx")])]
    extensions += [Extension("adding", [str(folder / "adding.pyx")])]
    cython, adding = cythonize(extensions, build_dir=str(folder / "translated"), force=True, quiet=True)
    torchs = include_paths()
    found = {
        "Cython": (cython.sources[0], cython.include_dirs),
        "pybind11": (here / "crossing_pybind11.cpp", torchs),
        "pybind11, fewest headers": (here / "crossing_pybind11.cpp", torchs, "-DFEWEST_HEADERS"),
        "torch.ops": (here / "crossing_torch_ops.cpp", torchs),
        "Cython, at.add": (adding.sources[0], adding.include_dirs),
        "pybind11, at::add": (folder / "adding.cpp", torchs),
    }
    if building.tool_version("nanobind"):
        found["nanobind"] = (here / "crossing_nanobind.cpp", [importlib.import_module("nanobind").include_dir()])
    if building.tool_version("tvm_ffi"):
        folders = importlib.import_module("tvm_ffi.libinfo").include_paths()
        found["tvm-ffi"] = (here / "crossing_tvm_ffi.cpp", folders)
    result = {}
    for how, (source, includes, *macros) in found.items():
        folders = [f"-I{path}" for path in (*includes, sysconfig.get_path("include"))]
        flags = [*CXX_FLAGS, "-O2", "-g0", "-fPIC", "-DTORCH_EXTENSION_NAME=compiled", *macros, *folders]
        result[how] = ["c++", *flags, "-c", str(source), "-o", str(folder / "out.o")]
    return result


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
