"""Which releases of Cython this package works with."""

import functools
import re
import warnings

import Cython

from interop.errors import Error

__all__ = ["CEILING", "FLOOR", "CythonVersionError", "check_version", "supported"]

FLOOR = (3, 1)
"""The first minor release that the test suite is run with."""

CEILING = (3, 3)
"""The last one. A later one may work: nothing refuses it for being later."""


class CythonVersionError(Error, RuntimeError):
    """The installed Cython cannot translate what this package declares."""


def supported() -> str:
    """The releases that the test suite is run with, in words."""
    return f"{FLOOR[0]}.{FLOOR[1]} to {CEILING[0]}.{CEILING[1]}"


def check_version() -> None:
    """Raise `CythonVersionError` below the floor. Warn, once in a process, above the ceiling."""
    _check(Cython.__version__)


@functools.cache
def _check(version: str) -> None:
    found = re.match(r"(\d+)\.(\d+)", version)
    running = (int(found[1]), int(found[2])) if found else CEILING
    if running < FLOOR:
        raise CythonVersionError(
            f"torch-interop works with Cython {supported()}, and Cython {version} is installed; run: "
            f"pip install 'Cython>={FLOOR[0]}.{FLOOR[1]}'"
        )
    if running > CEILING:
        warnings.warn(
            f"torch-interop is tested with Cython {supported()}, and Cython {version} is installed; if a build fails, "
            f"run: pip install 'Cython=={CEILING[0]}.{CEILING[1]}.*'",
            stacklevel=2,
        )
