"""Find the C++ compiler and the installed torch without importing torch, which takes seconds."""

import functools
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "CXX_FLAGS",
    "CXX_STANDARD",
    "MINIMUM_STABLE",
    "MINIMUM_TORCH",
    "SUFFIXES",
    "Torch",
    "compiler",
    "find_torch",
    "is_gcc",
    "openmp_flags",
    "predefined_macros",
]

MINIMUM_TORCH = (2, 10)
"""The first release whose THPVariable has a plain at::Tensor."""

MINIMUM_STABLE = (2, 11)
"""The first release whose C shim has all that the stable backend needs."""

CXX_STANDARD = 20

CXX_FLAGS = (f"-std=c++{CXX_STANDARD}",)
"""The flags for torch's headers: required from torch 2.14 on, accepted since 2.10."""

SUFFIXES = (".pyx", ".cpp", ".cc", ".cxx", ".c", ".cu")
"""How the names of the sources end that modules are compiled from."""


@dataclass(frozen=True)
class Torch:
    """An installed torch: its folder, its version, and the version of CUDA that it was built for, if any."""

    folder: Path
    version: str
    cuda: str | None

    @property
    def abi(self) -> str:
        """The name of its binary interface, such as ``torch_2_13``."""
        return str(_names()["abi_name"](self.version))

    @property
    def requirement(self) -> str:
        """The requirement of a project that is built for it, such as ``torch==2.13.*``."""
        return str(_names()["torch_requirement"](self.version))

    @property
    def include_dirs(self) -> list[str]:
        """The folders of its headers."""
        include = self.folder / "include"
        return [str(include), str(include / "torch" / "csrc" / "api" / "include")]

    @property
    def lib_dir(self) -> str:
        """The folder of its libraries."""
        return str(self.folder / "lib")

    @property
    def uses_openmp(self) -> bool:
        """Whether its loops run on OpenMP threads, according to the macro that ATen/Parallel.h tests."""
        try:
            config = (self.folder / "include" / "ATen" / "Config.h").read_text()
        except OSError:
            return False
        return re.search(r"^#define AT_PARALLEL_OPENMP 1", config, re.MULTILINE) is not None


def _names() -> dict[str, Any]:
    """The contents of interop/abi/names.py, whose package imports torch."""
    return _contents(Path(__file__).parent / "abi" / "names.py")


def _contents(path: Path) -> dict[str, Any]:
    """The names that a Python file defines. runpy.run_path changes sys.modules and sys.argv, which threads share."""
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    exec(compile(path.read_bytes(), path, "exec"), names)
    return names


@functools.cache
def find_torch() -> Torch | None:
    """The torch that ``import torch`` would find; None if there is none."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.origin:
        return None
    folder = Path(spec.origin).absolute().parent  # links are not resolved, because torch's own imports follow them too
    try:
        version = _contents(folder / "version.py")
    except OSError:
        return None
    return Torch(folder, str(version["__version__"]), version.get("cuda"))


def compiler() -> list[str]:
    """The C++ compiler's command for builds, as for torch's: CXX, or c++."""
    return shlex.split(os.environ.get("CXX", "")) or ["c++"]


def predefined_macros(*flags: str) -> dict[str, str] | None:
    """The macros that the compiler predefines with these flags; None if it does not run or rejects them."""
    return _predefined_macros(*compiler(), *flags, "-dM", "-E", "-x", "c++", os.devnull)


@functools.cache
def _predefined_macros(*command: str) -> dict[str, str] | None:
    try:
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return dict(re.findall(r"^#define (\w+) (.*)$", text, re.MULTILINE))


def is_gcc() -> bool:
    """Whether the compiler is g++ itself. clang defines the macros of g++ too."""
    macros = predefined_macros() or {}  # a build reports what is wrong with the compiler
    return "__GNUC__" in macros and "__clang__" not in macros


def openmp_flags() -> tuple[str, ...]:
    """The flag that lets Cython's prange and C++'s at::parallel_for() use several threads. Without it they are serial.

    Pass it to the compiler, not to the linker. A module that is linked with it requests a libgomp by name, and may
    load the system's, with its own threads and settings. In a module linked without it, the functions that the
    compiled code calls come from the libgomp that torch is linked to. clang would use another library, so it does not
    get the flag. A torch that does not use OpenMP threads does not get it either.
    """
    torch = find_torch()
    if torch is None or not torch.uses_openmp:
        return ()
    return ("-fopenmp",) if is_gcc() and sys.platform == "linux" else ()
