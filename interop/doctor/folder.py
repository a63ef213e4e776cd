"""What a folder has to do with it: files that Python takes for packages which are installed, and a project."""

import importlib.util
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from interop.doctor.finding import Finding, ok, problem, warning

__all__ = ["current_folder", "hiding"]

_PACKAGES = (
    "Cython",
    "cython",
    "elftools",
    "interop",
    "ninja",
    "numpy",
    "rich",
    "setuptools",
    "torch",
    "torchgen",
    "yaml",
)
_RUNNING = Path(__file__).resolve().parents[1]
# What no program imports by accident.
_HARMLESS = {"antigravity", "idlelib", "test", "this", "turtledemo"}


def current_folder() -> list[Finding]:
    """The project in the current folder, and what that hides: `python -c` and `python -m` look there first."""
    try:
        folder = Path.cwd()
    except FileNotFoundError:
        return []  # it has been removed
    return [*_project(folder), *hiding(folder)]


def _project(folder: Path) -> Iterator[Finding]:
    """How a project that is built with this package is to be built, since pip names no cause where it fails."""
    try:
        settings = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        required = " ".join(settings["build-system"]["requires"])
    except (OSError, ValueError, KeyError, TypeError):
        return  # there is none, or what is wrong with it others say
    if re.search(r"(?i)\btorch[-_.]interop\b", required):
        text = (
            "a project that is built with: pip install --no-build-isolation . Without the flag pip looks for "
            "torch-interop elsewhere than here: No matching distribution found"
        )
        yield ok("project", text)


def hiding(folder: Path) -> Iterator[Finding]:
    """The files in `folder` that hide packages which are needed, or parts of the standard library."""
    try:
        stems = {name.partition(".")[0] for name in os.listdir(folder)}
    except OSError:
        return
    for name in sorted(stems & {*_PACKAGES, *sys.stdlib_module_names} - _HARMLESS):
        here = PathFinder.find_spec(name, [str(folder)])
        if here is None or here.origin is None or _is_installed(name, here, folder):
            continue  # also a folder without __init__.py, which hides nothing
        path = Path(here.origin)
        if path.parent == _RUNNING and not (_RUNNING / "_build_info.py").is_file():
            continue  # the doctor itself comes from there, and says of itself what is to be done
        kind, path = ("folder", path.parent) if path.stem == "__init__" else ("file", path)
        whose = "a package" if name in _PACKAGES else "a module of Python itself"
        text = f"a {kind} {path.name} in the folder {folder} hides {whose}: `import {name}` there finds {path}"
        fix = f"rename {path}, or work elsewhere: Python looks in the folder of a program before all others"
        yield (problem if name in _PACKAGES else warning)(name, text, fix)


def _is_installed(name: str, here: ModuleSpec, folder: Path) -> bool:
    """Whether what lies in the folder is the one that is found from elsewhere, or would not be looked for."""
    elsewhere = [path for path in sys.path if os.path.realpath(path) != os.path.realpath(folder)]
    try:
        usual = importlib.util.find_spec(name)  # knows what is built in, and what is installed for editing
    except (ImportError, ValueError):
        usual = None
    if usual is not None and usual.origin in ("built-in", "frozen"):
        return True
    spec = PathFinder.find_spec(name, elsewhere) or usual
    return spec is not None and os.path.realpath(spec.origin or "") == os.path.realpath(here.origin or "")
