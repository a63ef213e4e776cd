"""The releases of Cython that this package works with."""

import functools
import re
import warnings
from pathlib import Path

import Cython

from interop.errors import Error

__all__ = ["CEILING", "FLOOR", "CythonVersionError", "check_version", "folder", "running", "supported", "version"]

FLOOR = (3, 1)
"""The first minor release that is supported. `make test-slow` translates all sources with it."""

CEILING = (3, 3)
"""The last one, with which the whole test suite runs. Later releases may work, and are not rejected."""


class CythonVersionError(Error, RuntimeError):
    """The installed Cython cannot translate this package's declarations."""


def supported() -> str:
    """The supported releases, in words. The tests run with the first and the last."""
    return f"{FLOOR[0]}.{FLOOR[1]} to {CEILING[0]}.{CEILING[1]}"


def version() -> str:
    """The version of the installed Cython."""
    return str(Cython.__version__)


def folder() -> Path:
    """The folder of the installed Cython."""
    return Path(Cython.__file__).parent


def running() -> tuple[int, int]:
    """The minor release of the installed Cython."""
    return _minor(version())


def check_version() -> None:
    """Raise `CythonVersionError` below the floor. Warn, once in a process, above the ceiling."""
    _check(version())


@functools.cache
def _check(version: str) -> None:
    if _minor(version) < FLOOR:
        raise CythonVersionError(
            f"torch-interop works with Cython {supported()}, but Cython {version} is installed; run: "
            f"pip install 'Cython>={FLOOR[0]}.{FLOOR[1]}'"
        )
    if _minor(version) > CEILING:
        warnings.warn(
            f"torch-interop supports Cython {supported()}, but Cython {version} is installed; if a build fails, "
            f"run: pip install 'Cython=={CEILING[0]}.{CEILING[1]}.*'",
            stacklevel=2,
        )


def _minor(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(re.match(r"\d+", minor)[0])  # type: ignore[index]  # such as 3.4b1
