"""Installs the originals, and our modules in the same way: from sources, with pip, each into a folder of its own."""

import importlib
import importlib.util
import os
import resource
import shutil
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from experiments import FOLDER
from experiments.harness import building
from interop.cli import CommandError
from interop.processes import ended_with_us

from .base import FLAGS, NAME, Port

__all__ = ["Installed", "available", "install_original", "install_ours", "unpacked"]

SETUP = f"""\
from pathlib import Path
from setuptools import setup
from interop.build import BuildExtension, Extension

(source,) = Path().glob("*.pyx")
module = Extension(source.stem, [str(source)], include_dirs=["."], extra_compile_args={FLAGS})
setup(
    name=source.stem, version="1.0", py_modules=[], ext_modules=[module], cmdclass={{"build_ext": BuildExtension}}
)
"""
"""The setup.py of one of our modules alone."""

EDIT = {".pyx": "\n# An edit.\n", ".cpp": "\n// An edit.\n", ".cu": "\n// An edit.\n"}


class Installed:
    """What it took to install one package, and what came of it: lines of sources, seconds, bytes."""

    def __init__(self, lines: int, seconds: Mapping[str, float], site: Path):
        libraries = [path.read_bytes() for path in site.rglob("*.so")]
        self.figures = {
            "lines": lines,
            "seconds": {what: round(value, 1) for what, value in seconds.items()},
            "bytes": sum(map(len, libraries)),
            "compressed": sum(len(zlib.compress(library, 6)) for library in libraries),
        }


def available(port: Port) -> bool:
    """Whether the original can be imported: as it was installed here before, or as the environment has it."""
    site = str(_folder(port) / "site")
    if os.path.isdir(site) and site not in sys.path:
        sys.path.append(site)
        importlib.invalidate_caches()
    return importlib.util.find_spec(port.module) is not None


def install_original(port: Port, shown: Callable[[str], None]) -> Installed:
    """Download the original's source distribution, and install it twice: the second time after an edit."""
    work = _folder(port)
    source = unpacked(port, work)
    files = [path for pattern in port.original_sources for path in sorted(source.glob(pattern))]
    lines = sum(_lines(path) for path in files)
    largest = max((path for path in files if path.suffix in EDIT), key=_lines)
    return Installed(lines, _timed(source, largest, work / "site", port.environment, shown), work / "site")


def unpacked(port: Port, work: Path) -> Path:
    """The folder of the original's sources, which are downloaded and unpacked below `work`, alone there."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    _pip("download", "--no-binary", ":all:", "--dest", str(work), port.requirement, environment=port.environment)
    (archive,) = work.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(work / "source", filter="data")
    (source,) = (work / "source").iterdir()
    return source


def install_ours(port: Port, name: str, shown: Callable[[str], None]) -> Installed:
    """The same for the module in the folder `name`."""
    work = _folder(port).with_name(f"{port.name}-ours")
    shutil.rmtree(work, ignore_errors=True)
    source = work / "source"
    source.mkdir(parents=True)
    files = [path for path in sorted((FOLDER / NAME / name).iterdir()) if path.suffix in {".pyx", ".pxd", ".h"}]
    for path in files:
        shutil.copy(path, source)
    (source / "setup.py").write_text(SETUP)
    (edited,) = source.glob("*.pyx")
    lines = sum(_lines(path) for path in files)
    return Installed(lines, _timed(source, edited, work / "site", {}, shown), work / "site")


def _folder(port: Port) -> Path:
    return building.BUILD / NAME / "originals" / port.name


def _timed(
    source: Path, edited: Path, site: Path, environment: Mapping[str, str], shown: Callable[[str], None]
) -> dict[str, float]:
    """Seconds of the processor that the installation takes: at first, and after an edit of one file."""
    seconds = {}
    for what in ("cold", "edit"):
        if what == "edit":
            edited.write_text(edited.read_text(encoding="utf-8") + EDIT[edited.suffix], encoding="utf-8")
        before = _of_children()
        _pip("install", "--upgrade", "--target", str(site), str(source), environment=environment)
        seconds[what] = _of_children() - before
        shown(what)
    return seconds


def _pip(command: str, *arguments: str, environment: Mapping[str, str]) -> None:
    flags = dict.fromkeys(("CFLAGS", "CXXFLAGS"), " ".join(FLAGS))
    with ended_with_us() as mark:
        done = subprocess.run(
            [sys.executable, "-m", "pip", command, "--no-build-isolation", "--no-deps", *arguments],
            env=os.environ | {"FORCE_ONLY_CPU": "1"} | flags | dict(environment) | mark,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    if done.returncode:
        lines = [line.strip() for line in done.stdout.splitlines() if "rror" in line] or ["no output"]
        raise CommandError(f"pip {command} {arguments[-1]} failed: {lines[0]}")


def _of_children() -> float:
    """Seconds of the processor that processes which this one started have taken, and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _lines(path: Path) -> int:
    """The lines of a source, without those that are empty or have a comment alone."""
    mark = "#" if path.suffix in {".pyx", ".pxd"} else "//"
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return sum(bool(line) and not line.startswith(mark) for line in lines)
