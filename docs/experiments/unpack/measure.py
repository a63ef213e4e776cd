"""Measures reads: nanoseconds and instructions, and what a compiler takes and says."""

import os
import re
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy
from torch.utils.cpp_extension import include_paths

from experiments import FOLDER
from experiments.harness import building, calls
from interop import get_include

from . import ways
from .ways import NAME

INCLUDED = {"mirror": "interop/tensor.h", "header": "torch/csrc/autograd/python_variable.h"}
"""What one includes for a tensor."""
CHANGED = {"torch.Tensor, as up to 2.9": "OLD_TENSOR", "numpy.dtype, as in NumPy 1": "OLD_DTYPE"}
"""Mirrors of what older releases had, and the macros with which assertions.h has them."""


def times(rounds: int, number: int, shown: Callable[[str], None]) -> dict[str, dict[str, dict]]:
    """Nanoseconds of each read, by what is read and by way: see `calls.times`."""
    timers = {
        (what, way): calls.timer("function(x)", {"function": function, "x": ways.VALUES[what]})
        for (what, way), function in ways.functions().items()
    }
    return calls.times(timers, rounds, number, shown)


def instructions(count: int = 20_000) -> dict[str, dict[str, float]]:
    """Instructions of each read, from map() into the function and back with its result: see `calls.instructions`."""
    return calls.instructions(NAME, ways.functions(), count)


def run_below_callgrind(count: int) -> None:
    """Make each read `count` times, and have its instructions written out."""
    for (what, _), function in ways.functions().items():
        calls.run_counted(function, [ways.VALUES[what]], count)


def compiling(shown: Callable[[str], None]) -> dict[str, float]:
    """Seconds of g++ for nothing but the header that each way to read a tensor needs."""
    result = {}
    for way, header in INCLUDED.items():
        started = time.perf_counter()
        _compile(f"#include <Python.h>\n#include <{header}>\n", "-c").check_returncode()
        result[way] = round(time.perf_counter() - started, 1)
        shown(way)
    return result


def caught(shown: Callable[[str], None]) -> dict[str, str]:
    """What the compiler says of mirrors that are those of older releases, and "" of one that is right."""
    result = {}
    for label, macro in {"": "", **CHANGED}.items():
        done = _compile(f'{f"#define {macro}" if macro else ""}\n#include "assertions.h"\n', "-fsyntax-only")
        found = re.search(r"error: (.*)", done.stderr)
        result[label or "as they are"] = found[1] if found else ""
        shown(label)
    return result


def _compile(code: str, *arguments: str) -> subprocess.CompletedProcess:
    folders = [FOLDER / NAME, get_include(), *include_paths(), numpy.get_include(), sysconfig.get_path("include")]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source.cpp")
        source.write_text(code)
        command = ["c++", *building.FLAGS, *(f"-I{path}" for path in folders), str(source), "-o", f"{folder}/out.o"]
        # Messages of the compiler in English go into a result.
        environment = os.environ | {"LC_ALL": "C"}
        return subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment)
