"""Measures calls, in nanoseconds and in instructions, the sizes of files, and translating and compiling, in seconds."""

import resource
import subprocess
import sysconfig
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from torch.utils.cpp_extension import include_paths

from experiments import FOLDER
from experiments.harness import building, calls
from interop.build import cythonize

from . import ways

SMALL = {  # a module with one function, by what its source is written in
    ".pyx": "cimport torch\ncimport ATen as at\n\n"
    "def twice(torch.Tensor x not None):\n    return torch.wrap(at.add(x.cdata, x.cdata))\n",
    ways.PYBIND11: """\
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <torch/csrc/utils/pybind.h>

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("twice", [](const at::Tensor& x) { return at::add(x, x); });
}
""",
    ways.OPERATORS: """\
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

using torch::stable::Tensor;

Tensor twice(Tensor x) {
  return torch::stable::subtract(x, x, -1);
}

STABLE_TORCH_LIBRARY(small, library) {
  library.def("twice(Tensor x) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(small, CPU, library) {
  library.impl("twice", TORCH_BOX(&twice));
}
""",
}
MODULES = ("small", "kernels")


def times(rounds: int, numbers: dict[str, int], shown: Callable[[str], None]) -> dict[str, dict[str, dict]]:
    """Nanoseconds of a call of each kernel, by way: see `calls.times`. `numbers` has the calls in a block."""
    found, result = ways.kernels(), {}
    for name, given in ways.arguments().items():
        named = dict(zip("abcd", given, strict=False))
        timers = {
            (name, way): calls.timer(f"function({', '.join(named)})", named | {"function": functions[name]})
            for way, functions in found.items()
        }
        for one in timers.values():
            one.timeit(2)  # what happens at first calls only
        result |= calls.times(timers, rounds, numbers[name], shown)
    return result


def instructions(count: int = 500) -> dict[str, dict[str, float]]:
    """Instructions of each call, from map() into the function and back with its result: see `calls.instructions`."""
    return calls.instructions(ways.NAME, [(name, way) for name in ways.KERNELS for way in ways.available()], count)


def run_below_callgrind(count: int) -> None:
    """Make each call `count` times, and have its instructions written out."""
    found = ways.kernels()
    for name, given in ways.arguments().items():
        for functions in found.values():
            calls.run_counted(functions[name], given, count)


def sizes() -> dict[str, dict[str, int]]:
    """How many files each way has, their bytes, and the bytes that are left of them in a wheel, about."""
    result = {}
    for way, paths in ways.files().items():
        contents = [path.read_bytes() for path in paths]
        result[way] = {
            "files": len(contents),
            "bytes": sum(map(len, contents)),
            "compressed": sum(len(zlib.compress(content)) for content in contents),
        }
    return result


def count_of_compilations(quick: bool) -> int:
    """How many steps a round of `compiling` has."""
    found = ways.available()
    return len(MODULES[:1] if quick else MODULES) * (len(found) + sum(way in ways.CYTHON for way in found))


def compiling(rounds: int, quick: bool, shown: Callable[[str], None]) -> dict[str, dict[str, dict[str, float]]]:
    """Seconds of the processor for each module, by way, of Cython and of g++: the best of `rounds`.

    A quick run compiles the small module alone.
    """
    result = {}
    for module in MODULES[:1] if quick else MODULES:
        found = result[module] = {way: {} for way in ways.available()}
        for number in range(rounds):
            # Each round has a folder of its own, so that nothing is found that was made before.
            with tempfile.TemporaryDirectory() as folder:
                for way, seconds in found.items():
                    _compile_once(module, way, Path(folder, f"{ways.module_name(way)}_{number}"), seconds, shown)
    return {
        module: {way: {what: round(least, 2) for what, least in seconds.items()} for way, seconds in found.items()}
        for module, found in result.items()
    }


def _compile_once(module: str, way: str, folder: Path, best: dict[str, float], shown: Callable[[str], None]) -> None:
    """Translate and compile once, and put what takes less than before into `best`."""
    folder.mkdir()
    here, includes, macros, flags = FOLDER / ways.NAME, include_paths(), [], []
    if way in ways.CYTHON:
        source = here / "kernels.pyx"
        if module == "small":
            source = folder / "small.pyx"
            source.write_text(SMALL[".pyx"])
        extension = ways.extension(way, source, folder.name)
        started = time.process_time()
        (translated,) = cythonize(extension, build_dir=str(folder / "translated"), force=True, quiet=True)
        _keep(best, "translate", time.process_time() - started)
        shown(f"{way}: Cython")
        source, includes = Path(translated.sources[0]), translated.include_dirs
        macros, flags = translated.define_macros, translated.extra_compile_args
    else:
        source = here / f"{ways.module_name(way)}.cpp"
        if module == "small":
            source = folder / "small.cpp"
            source.write_text(SMALL[way])
        if way == ways.OPERATORS:
            macros = [("TORCH_TARGET_VERSION", ways.TARGET), ("TORCH_STABLE_ONLY", None)]
    command = ["c++", *flags, *building.FLAGS, "-fPIC", "-DTORCH_EXTENSION_NAME=compiled"]
    command += [f"-D{name}" + ("" if value is None else f"={value}") for name, value in macros]
    command += [f"-I{path}" for path in (*includes, sysconfig.get_path("include"))]
    before = _of_children()
    subprocess.run([*command, "-c", str(source), "-o", str(folder / "out.o")], check=True)
    _keep(best, "g++", _of_children() - before)
    shown(f"{way}: g++")


def _of_children() -> float:
    """Seconds of the processor that processes which this one started have taken, and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _keep(best: dict[str, float], what: str, seconds: float) -> None:
    best[what] = min(best.get(what, seconds), seconds)
