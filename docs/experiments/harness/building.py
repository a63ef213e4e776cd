"""Compiles an experiment's setup.py into build/experiments/NAME, and only when something that it depends on changed."""

import contextlib
import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import torch

from experiments import CHECKOUT, FOLDER, variables
from experiments.harness.display import waiting
from interop import paths
from interop.build import CXX_FLAGS
from interop.cli import CommandError
from interop.jit.cache_folder import locked
from interop.processes import ended_with_us

__all__ = [
    "BUILD",
    "FLAGS",
    "LOOP_FLAGS",
    "MODULES",
    "TOOLS",
    "build",
    "build_once",
    "is_built",
    "native",
    "native_path",
    "tool_version",
]

BUILD = CHECKOUT / "build" / "experiments"
FLAGS = [*CXX_FLAGS, "-O2", "-g0"]
"""The compile flags of every form that is compared. They come last, so they win over those of Python and CFLAGS."""

LOOP_FLAGS = [*CXX_FLAGS, "-O3", "-fno-trapping-math", "-fno-math-errno", "-g0"]
"""The flags of forms with loops of their own. g++ needs them to vectorise, and ATen is compiled with them."""

TOOLS = {"nanobind": "nanobind", "tvm_ffi": "apache-tvm-ffi", "cffi": "cffi"}
"""Packages whose headers an experiment may be compiled with, and the distributions that they come in."""

MODULES = "EXPERIMENT_MODULES"
"""The environment variable that names the modules to build, with blanks between; all of them if it is not set."""

_VARIABLES = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS")
"""What setuptools and Ninja take compilers and flags from."""

_NOT_LOADED = {"demo.py", "report.py", "run.py"}
"""The Python files of an experiment that no build reads. A change there compiles nothing again."""

_ERROR = re.compile(r"\berror: |^(?!performance hint: |warning: ).*\.pyx:\d+:\d+: ")  # of the compiler, of Cython


def build(name: str, modules: Sequence[str] = ()) -> None:
    """Compile the extensions of the experiment `name`, unless they are there and up to date.

    Only those `modules`, if there are any; its setup.py must then read `MODULES`.
    """
    folder, work = FOLDER / name, BUILD / name
    with locked(work / "lock"):  # `make test` and `make demo` may run beside each other
        if is_built(name, modules):
            return
        wanted, stamp = _fingerprint(folder), _stamp(name, modules)
        for old in stamp.parent.glob("stamp*"):
            old.unlink()  # a build that fails half-way leaves files that no stamp vouches for
        # --force: setuptools checks only the sources, not the headers. Ninja still compiles only what changed.
        command = [sys.executable, "setup.py", "build_ext", "--force", f"--parallel={os.cpu_count() or 1}"]
        command += ["--build-temp", str(work / "objects"), "--build-lib", str(work / "lib")]
        with ended_with_us() as mark:
            done = subprocess.run(
                command,
                cwd=folder,
                env=os.environ | variables() | mark | ({MODULES: " ".join(modules)} if modules else {}),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
        log = work / "build.log"
        log.write_text(done.stdout, encoding="utf-8")
        if done.returncode:
            lines = done.stdout.splitlines() or ["no output"]
            first = next((line.strip() for line in lines if _ERROR.search(line)), lines[-1])
            raise CommandError(f"compiling experiment {name} failed: {first} (all of it: {os.path.relpath(log)})")
        stamp.write_text(wanted)


def build_once(name: str, how_long: str, modules: Sequence[str] = ()) -> None:
    """`build`, and say in the meantime that it goes on."""
    if not is_built(name, modules):
        with waiting(f"compiling the modules, once: {how_long}"):
            build(name, modules)


def is_built(name: str, modules: Sequence[str] = ()) -> bool:
    """Whether `build` has nothing to do."""
    stamps = [stamp for stamp in {_stamp(name), _stamp(name, modules)} if stamp.exists()]
    return bool(stamps) and _fingerprint(FOLDER / name) in [stamp.read_text() for stamp in stamps]


def tool_version(package: str) -> str | None:
    """The version of one of `TOOLS`; None where it is not installed."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(TOOLS[package])
    return None


def native(name: str, module: str) -> ModuleType:
    """Import a compiled module of the experiment `name`."""
    full = f"experiments.{name}.{module}"
    if full not in sys.modules:
        path = native_path(name, module)
        loader = importlib.machinery.ExtensionFileLoader(full, str(path))
        spec = importlib.util.spec_from_file_location(full, path, loader=loader)
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        sys.modules[full] = loaded
    return sys.modules[full]


def native_path(name: str, module: str) -> Path:
    """The file of a compiled module of the experiment `name`; it may have been compiled for many CPythons."""
    paths = [BUILD / name / "lib" / (module + suffix) for suffix in importlib.machinery.EXTENSION_SUFFIXES]
    return next((path for path in paths if path.exists()), paths[0])


def _stamp(name: str, modules: Sequence[str] = ()) -> Path:
    """The file with the fingerprint of what was built; it lies with the modules, and so goes when they go."""
    return BUILD / name / "lib" / "-".join(["stamp", *modules])


def _fingerprint(folder: Path) -> str:
    """A hash of the sources, of the toolkit that they are built with, and of the versions and environment."""
    settings = [
        sys.version,
        torch.__version__,
        FLAGS,
        LOOP_FLAGS,
        *(os.environ.get(key) for key in _VARIABLES),
    ]
    if any(folder.glob("*.cu")):
        settings += [os.environ.get(key) for key in ("CUDA_HOME", "INTEROP_CUDA", "TORCH_CUDA_ARCH_LIST")]
    setup = folder / "setup.py"
    text = setup.read_text(encoding="utf-8") if setup.exists() else ""
    settings += [f"{package} {tool_version(package)}" for package in TOOLS if package in text]
    digest = hashlib.sha256(repr(settings).encode())
    ours = [paths.get_pxd_dir(), paths.get_include(), paths.get_source_dir(), paths.get_stable_dir()]
    places = [folder, *ours, CHECKOUT / "interop"]
    for place in map(Path, places):
        for path in sorted(place.rglob("*")):
            compiled = path.suffix in {".pyx", ".pxd", ".h", ".cpp", ".cu", ".cuh"}
            helper = path.parent.name in ("build", "cython") and path.suffix == ".py"
            # setup.py may take flags and sources out of the experiment's other Python files.
            loaded = place == folder and path.suffix == ".py" and path.name not in _NOT_LOADED
            if compiled or helper or loaded:
                digest.update(str(path.relative_to(place)).encode() + path.read_bytes())
    return digest.hexdigest()
