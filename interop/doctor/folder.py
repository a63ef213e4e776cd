"""Checks of the current folder: a project, and files that hide installed packages."""

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
# Modules that no program imports by accident.
_HARMLESS = {"antigravity", "idlelib", "test", "this", "turtledemo"}


def current_folder() -> list[Finding]:
    """The project in the current folder, and modules that the folder hides: `python -c` and `-m` search it first."""
    try:
        folder = Path.cwd()
    except FileNotFoundError:
        return []  # the folder was removed
    return [*_project(folder), *hiding(folder)]


def _project(folder: Path) -> Iterator[Finding]:
    """How to build a project that uses this package, because pip does not name the cause of a failure."""
    try:
        settings = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        required = " ".join(settings["build-system"]["requires"])
    except (OSError, ValueError, KeyError, TypeError):
        return  # there is no project, or other tools report its errors
    if re.search(r"(?i)\btorch[-_.]interop\b", required):
        text = (
            "a project; build it with: pip install --no-build-isolation . Without the flag pip searches "
            "its index for torch-interop: No matching distribution found"
        )
        yield ok("project", text)


def hiding(folder: Path) -> Iterator[Finding]:
    """The files in `folder` that hide required packages, or parts of the standard library."""
    try:
        stems = {name.partition(".")[0] for name in os.listdir(folder)}
    except OSError:
        return
    for name in sorted(stems & {*_PACKAGES, *sys.stdlib_module_names} - _HARMLESS):
        here = PathFinder.find_spec(name, [str(folder)])
        if here is None or here.origin is None or _is_installed(name, here, folder):
            continue  # it hides nothing, such as a folder without __init__.py
        path = Path(here.origin)
        if path.parent == _RUNNING and not (_RUNNING / "_build_info.py").is_file():
            continue  # the doctor itself runs from there, and has its own finding
        kind, path = ("folder", path.parent) if path.stem == "__init__" else ("file", path)
        whose = "a package" if name in _PACKAGES else "a module of the standard library"
        text = f"a {kind} {path.name} in the folder {folder} hides {whose}: `import {name}` there finds {path}"
        fix = f"rename {path}, or work in another folder: Python searches the folder of a program before all others"
        yield (problem if name in _PACKAGES else warning)(name, text, fix)


def _is_installed(name: str, here: ModuleSpec, folder: Path) -> bool:
    """Whether Python finds the same file from other folders, or does not search for it."""
    elsewhere = [path for path in sys.path if os.path.realpath(path) != os.path.realpath(folder)]
    try:
        usual = importlib.util.find_spec(name)  # finds builtin modules and editable installs
    except (ImportError, ValueError):
        usual = None
    if usual is not None and usual.origin in ("built-in", "frozen"):
        return True
    spec = PathFinder.find_spec(name, elsewhere) or usual
    return spec is not None and os.path.realpath(spec.origin or "") == os.path.realpath(here.origin or "")
