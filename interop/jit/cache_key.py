"""The inputs of a module, and their hash, which names the build in the cache."""

import functools
import hashlib
import json
import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import interop
from interop import paths
from interop.cython import versions
from interop.stable_abi import stable_abi
from interop.toolchain import compiler

__all__ = [
    "CPU",
    "CUDA",
    "NATIVE",
    "Target",
    "cache_key",
    "file_digest",
    "file_states",
    "flags_environment",
    "is_native",
    "machine_environment",
]

NATIVE = "native.so"
"""The file with the module itself. Python imports the file beside it, the bootstrap."""

FORMAT = 4
"""Increment it when the layout of the cache changes."""

BUILD = ("pxd", "include", "csrc", "build", "cython", "jit", "stable", "stable_abi.py", "toolchain.py")
"""The parts of this package that determine the output of a build."""

VARIABLES = (
    *("CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"),
    *("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "LD_RUN_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"),
)
"""The environment variables that every build depends on."""

CUDA_VARIABLES = (
    *("CUDA_HOME", "CUDA_PATH", "INTEROP_CUDA", "TORCH_CUDA_ARCH_LIST"),
    *("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN"),
)
_CPU_LINES = ("vendor_id", "model name", "flags", "Features", "CPU implementer", "CPU part")


@dataclass(frozen=True)
class Target:
    """A module to build."""

    name: str
    sources: tuple[str, ...]  # absolute paths of files, and names of texts
    texts: Mapping[str, str] = field(default_factory=dict)  # texts, by the names of their files
    labels: Mapping[str, str] = field(default_factory=dict)  # the names of these texts in errors
    # The arguments of `interop.build.Extension`, and ``compiler_directives`` and ``annotate``.
    options: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""  # what progress calls the module, if not by its name

    @property
    def origin(self) -> str | None:
        """The file that identifies the module; None for a module of texts."""
        if self.texts:
            return None
        cython = [source for source in self.sources if source.endswith(".pyx")]
        return os.path.realpath((cython or self.sources)[0])  # with all links resolved

    @property
    def made(self) -> tuple[str, ...]:
        """The files that a build makes: the one to import and, unless it is for many releases, the module itself."""
        abi = stable_abi(self.options.get("stable"), self.options.get("py_limited_api"))
        if abi:
            return (self.name + abi.suffix,)
        return f"{self.name}{sysconfig.get_config_var('EXT_SUFFIX')}", NATIVE

    def key(self) -> str:
        """The hash of all inputs that are known before the build; the manifest lists the others."""
        files = [(path, file_digest(path)) for path in self.sources if path not in self.texts]
        return cache_key("module", self.name, self.sources, files, dict(self.texts), dict(self.options))


def cache_key(*parts: object, uses: Sequence[str] = BUILD) -> str:
    """A hash of `parts`, of the toolchain, and of the parts of this package that a build `uses`."""
    text = json.dumps([FORMAT, parts, _toolchain(), _package_digest(tuple(uses))], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _toolchain() -> list[object]:
    """Versions, the compiler, and the environment variables that it reads."""
    # The files of the compiler's command identify it, because running it for its version would take longer.
    command = file_states(filter(None, map(shutil.which, compiler())))
    return [
        (torch.__version__, torch.version.git_version, os.path.dirname(torch.__file__)),
        (sys.version, sys.prefix, sysconfig.get_config_var("EXT_SUFFIX"), platform.machine()),
        (interop.__version__, versions.version()),
        command,
        [os.environ.get(name) for name in VARIABLES],
    ]


@functools.cache
def _package_digest(parts: tuple[str, ...]) -> str:
    """A hash of our own inputs to a build: declarations, headers, the bootstrap, and the build code."""
    package = os.path.dirname(paths.__file__)
    places = {
        "pxd": paths.get_pxd_dir(),
        "include": paths.get_include(),
        "stable": paths.get_stable_dir(),
        "csrc": os.path.join(paths.get_source_dir(), "bootstrap.cpp"),
    }
    files = []
    for part in parts:
        place = places.get(part, os.path.join(package, part))
        files += [place] if os.path.isfile(place) else []
        for folder, _, names in os.walk(place):
            files += [
                os.path.join(folder, name)
                for name in names
                if name.endswith((".pxd", ".h", ".cuh", ".py", ".a", ".map"))
            ]
    digest = hashlib.sha256()
    for path in sorted(files):
        # Unbuffered, because the whole file is read; and without a GIL, closing a buffered file spins on a lock.
        with open(path, "rb", buffering=0) as file:
            digest.update(path.encode() + file.read())
    return digest.hexdigest()


def file_digest(path: str | os.PathLike[str]) -> str | None:
    """A hash of a file's content; None if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def file_states(paths: Iterable[str]) -> list[list[object]]:
    """Files with their sizes and modification times, for programs that are too large to read."""
    found: list[list[object]] = []
    for path in paths:
        real = os.path.realpath(path)
        state = os.stat(real)
        found.append([real, state.st_size, state.st_mtime_ns])
    return found


# Only some builds depend on the processor or CUDA. A build finds out while it runs.
CPU, CUDA = "cpu", "cuda"


def machine_environment(names: Iterable[str]) -> dict[str, object]:
    """The current state of the parts of the environment in `names`, in a form that survives JSON."""
    return {name: _STATES[name]() for name in names}


def is_native(flags: Iterable[str]) -> bool:
    """Whether the compiler's command with these flags generates code that may need this processor."""
    return any(flag.endswith("=native") for word in [*compiler(), *flags] for flag in word.split(","))


def flags_environment(flags: Iterable[str], *others: str) -> dict[str, object]:
    """The part of the environment that code compiled with these flags depends on, and `others`."""
    return machine_environment([*others, CPU] if is_native(flags) else others)


def _cpu() -> list[str]:
    """Linux's description of the first processor."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    except OSError:
        return []
    return [line for line in first.splitlines() if line.startswith(_CPU_LINES)]


def _cuda() -> list[object]:
    """CUDA's variables, nvcc, and the GPUs of this machine if nvcc compiles for them."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    nvcc = shutil.which(os.path.join(home, "bin", "nvcc") if home else "nvcc")
    named = os.environ.get("TORCH_CUDA_ARCH_LIST", "native")
    gpus = _gpus() if torch.version.cuda and named in ("", "native") else []
    return [[os.environ.get(name) for name in CUDA_VARIABLES], file_states([nvcc] if nvcc else []), gpus]


def _gpus() -> list[object]:
    """The models of the GPUs, and which are visible.

    They come from files, because a child process cannot use CUDA once this process has.
    """
    models = []
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        models += [line.partition(":")[2].strip() for line in lines if line.startswith("Model")]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    # Equal models are interchangeable.
    return [models, visible if len(set(models)) > 1 else visible in ("", "-1")]


_STATES: dict[str, Callable[[], object]] = {CPU: _cpu, CUDA: _cuda}
