"""Macros for modules that run under many releases of torch and CPython: they restrict the code to stable functions.

Torch promises to keep the functions of its C shim, and CPython those of its Limited API. Nothing here imports torch,
which takes seconds.
"""

import importlib.machinery
import os
import re
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass

from interop.paths import get_stable_dir
from interop.toolchain import MINIMUM_STABLE, find_torch

__all__ = ["MINIMUM_LIMITED_API", "VISIBILITY", "StableABI", "export_flag", "of_macros", "release_of", "stable_abi"]

MINIMUM_LIMITED_API = (3, 11)
"""The first release of CPython whose Limited API has buffers, which typed memoryviews need."""

VISIBILITY = "-fvisibility=hidden"
"""A compiler flag. Without it, a module's symbols could clash with those of another module or of torch."""

_TORCH, _PYTHON = "INTEROP_STABLE", "INTEROP_LIMITED_API"


def export_flag() -> str:
    """The linker flag that hides all symbols of a module but its entry point."""
    return f"-Wl,--version-script={os.path.join(get_stable_dir(), 'include', 'interop', 'exports.map')}"


@dataclass(frozen=True)
class StableABI:
    """The oldest torch and the oldest CPython that a module runs with; without the latter, only the build's CPython."""

    torch: str  # such as "2.11"
    python: str | None = None  # such as "cp312"

    @property
    def macros(self) -> list[tuple[str, str | None]]:
        """Macros for the compiler. With torch's, functions that are stable only later or not at all do not compile."""
        major, minor = map(int, self.torch.split("."))
        found: list[tuple[str, str | None]] = [
            ("TORCH_TARGET_VERSION", f"0x{major:02x}{minor:02x}{0:012x}"),
            ("TORCH_STABLE_ONLY", None),
            (_TORCH, f'"{self.torch}"'),
        ]
        if self.python:
            found += [
                ("Py_LIMITED_API", f"0x{3:02x}{int(self.python[3:]):02x}0000"),  # Cython sees this one
                (_PYTHON, f'"{self.python}"'),
            ]
        return found

    @property
    def suffix(self) -> str:
        """The suffix of the file names of such modules."""
        suffixes = importlib.machinery.EXTENSION_SUFFIXES
        return next(one for one in suffixes if one.startswith(".abi3")) if self.python else suffixes[0]


def stable_abi(stable: object, py_limited_api: object = None) -> StableABI | None:
    """The ABI that these arguments of `interop.build.Extension` request; None without `stable`.

    Raise ValueError if an argument is wrong, or the module cannot be built here.
    """
    if stable is None:
        if py_limited_api:
            raise ValueError(
                f"py_limited_api must be left out without stable, got {py_limited_api!r}: torch's C++ interface is not "
                "part of Python's stable ABI; with stable='2.11', say, the module uses torch's C shim instead"
            )
        return None
    installed = find_torch()
    newest = release_of(installed.version) if installed else None
    if newest and newest < MINIMUM_STABLE:
        raise ValueError(
            f"stable must be left out with torch {_dotted(newest)}, which is installed, got {stable!r}: modules for "
            f"many releases are built with torch {_dotted(MINIMUM_STABLE)} or newer"
        )
    asked = re.fullmatch(r"([0-9]+)\.([0-9]+)", stable) if isinstance(stable, str) else None
    release = release_of(stable) if asked and isinstance(stable, str) else None
    if release is None or release < MINIMUM_STABLE or (newest and release > newest):
        last = f" to the installed release, {_dotted(newest)!r}" if newest else " on"
        raise ValueError(
            "stable must be the oldest release of torch that the module supports, a string from "
            f"{_dotted(MINIMUM_STABLE)!r}{last}, got {stable!r}"
        )
    if py_limited_api is None:
        return StableABI(_dotted(release))
    found = re.fullmatch(r"cp3([0-9]+)", py_limited_api) if isinstance(py_limited_api, str) else None
    if found is None or not MINIMUM_LIMITED_API <= (3, int(found[1])) <= sys.version_info[:2]:
        raise ValueError(
            "py_limited_api must be the oldest CPython that the module supports, a string from "
            f"{_tag(MINIMUM_LIMITED_API)!r} to {_tag(sys.version_info[:2])!r}, which is running, got {py_limited_api!r}"
        )
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise ValueError(
            f"py_limited_api must be left out, got {py_limited_api!r}: a free-threaded CPython, like this one, has no "
            "Limited API"
        )
    return StableABI(_dotted(release), _tag((3, int(found[1]))))


def of_macros(macros: Iterable[tuple[str, str | None]]) -> StableABI | None:
    """The ABI that an extension with these macros is compiled for; None if it is not a stable module."""
    values = {name: (value or "").strip('"') for name, value in macros}
    return StableABI(values[_TORCH], values.get(_PYTHON)) if _TORCH in values else None


def release_of(version: str) -> tuple[int, int]:
    """The minor release of a version, for comparisons."""
    major, minor = version.split(".")[:2]
    return int(major), int(re.match(r"\d+", minor)[0])  # type: ignore[index]  # such as 15a0


def _dotted(release: tuple[int, int]) -> str:
    return f"{release[0]}.{release[1]}"


def _tag(release: tuple[int, int]) -> str:
    return f"cp{release[0]}{release[1]}"
