"""What a module is made from, and the hash of it that names the build."""

import functools
import hashlib
import json
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

import interop
from interop import paths

__all__ = ["Recipe", "digest_of_file", "environment", "key_of", "states_of"]

FORMAT = 2
"""Goes up when what is kept is laid out in another way."""

VARIABLES = (
    *("CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"),
    *("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "LD_RUN_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"),
)
"""The environment variables on which a build depends."""


@dataclass(frozen=True)
class Recipe:
    """What a module is made from.

    Attributes
    ----------
    name
        The module's name.
    sources
        Absolute paths of files, and names of texts.
    texts
        Sources that are no files, by the names of the files that they become.
    labels
        What these texts are called in errors.
    options
        The arguments of `interop.build.Extension`, and ``compiler_directives`` and ``annotate``.
    """

    name: str
    sources: tuple[str, ...]
    texts: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def origin(self) -> str | None:
        """The file that the module is known by; None for one of texts."""
        if self.texts:
            return None
        cython = [source for source in self.sources if source.endswith(".pyx")]
        return os.path.realpath((cython or self.sources)[0])  # through whatever link it was named

    def key(self) -> str:
        """The hash of all that is known before the build; what the sources include is compared with the manifest."""
        files = [(path, digest_of_file(path)) for path in self.sources if path not in self.texts]
        return key_of("module", self.name, self.sources, files, dict(self.texts), dict(self.options))


def key_of(*parts, of: Sequence[str] = ("pxd", "include", "csrc", "build", "codegen", "cython", "jit")) -> str:
    """A hash of `parts` and of the tools that make something of them: of our own, the parts `of` that matter."""
    text = json.dumps([FORMAT, parts, environment(), _toolkit(tuple(of))], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def environment() -> list:
    """Versions, the compiler, and the variables of the environment that matter to it."""
    return [
        (torch.__version__, torch.version.git_version, os.path.dirname(torch.__file__)),
        (sys.version, sys.prefix, platform.machine()),
        (interop.__version__, _cython_version()),
        _compiler(),
        [os.environ.get(name) for name in VARIABLES],
    ]


def digest_of_file(path: str | os.PathLike) -> str | None:
    """A hash of a file's content; None if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _cython_version() -> str:
    from Cython import __version__

    return __version__


def _compiler() -> list:
    """The files that the compiler's command names: to ask it for its version would take longer."""
    return states_of(filter(None, map(shutil.which, shlex.split(os.environ.get("CXX") or "c++"))))


def states_of(paths: Iterable[str]) -> list:
    """Files with their sizes and dates, of programs that are too large to be read."""
    found = []
    for path in paths:
        real = os.path.realpath(path)
        state = os.stat(real)
        found.append([real, state.st_size, state.st_mtime_ns])
    return found


@functools.cache
def _toolkit(parts: tuple[str, ...]) -> str:
    """A hash of our own part in a build: declarations, headers, the bootstrap, and the code that builds."""
    package = Path(paths.__file__).parent
    places = {"pxd": paths.get_pxd_dir(), "include": paths.get_include()}
    files = [os.path.join(paths.get_source_dir(), "bootstrap.cpp")] if "csrc" in parts else []
    for part in parts:
        for folder, _, names in os.walk(places.get(part, package / part)):
            files += [os.path.join(folder, name) for name in names if name.endswith((".pxd", ".h", ".cuh", ".py"))]
    digest = hashlib.sha256()
    for path in sorted(files):
        with open(path, "rb") as file:
            digest.update(path.encode() + file.read())
    return digest.hexdigest()
