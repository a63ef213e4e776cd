"""`BuildError`: what is wrong, in the words of Cython or the compiler, beside the lines that were written."""

import errno
import functools
from collections.abc import Sequence
from pathlib import Path

from interop.cython.diagnostics import Diagnostic
from interop.paths import get_cache_dir

__all__ = ["BuildError", "CacheError", "Diagnostic", "message_of"]

SHOWN = 5
"""So many errors are shown; the first of them is mostly the cause of the rest."""


class BuildError(RuntimeError):
    """A module could not be built.

    Attributes
    ----------
    name : str
        The module's name.
    diagnostics : tuple of Diagnostic
        The errors in its sources; empty where something else is wrong, such as a compiler that is missing.
    output : str
        All that Cython or the compiler said.
    command : tuple of str
        The command that failed, if it was one.
    """

    def __init__(
        self,
        name: str,
        reason: str = "",
        *,
        diagnostics: Sequence[Diagnostic] = (),
        output: str = "",
        command: Sequence[str] = (),
    ):
        self.name = name
        self.diagnostics = tuple(diagnostics)
        self.output = output
        self.command = tuple(command)
        shown = [str(one) for one in self.diagnostics[:SHOWN]]
        if len(self.diagnostics) > SHOWN:
            shown.append(f"... and {len(self.diagnostics) - SHOWN} more, see the attribute `diagnostics`")
        first = f"module {name!r} cannot be built" + (f": {reason}" if reason else "")
        super().__init__("\n".join([first, *shown]))
        self._reason = reason

    def __reduce__(self):
        named = {"diagnostics": self.diagnostics, "output": self.output, "command": self.command}
        return functools.partial(BuildError, **named), (self.name, self._reason)


class CacheError(BuildError):
    """The folder for modules may not be used, whatever there is to be built."""

    def __init__(self, name: str, reason: str):
        super().__init__(name, reason)
        self.args = (reason,)

    def __reduce__(self):
        return CacheError, (self.name, self._reason)


def message_of(error: OSError) -> str:
    """Why something could not be read or written, and what to do about it."""
    if error.filename and not Path(error.filename).is_relative_to(get_cache_dir()):
        return f"{error.strerror}: {error.filename}"
    place = f" {error.filename}" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            f"there is no room to write{place} ({error.strerror}); make some, with `python -m interop cache --clear` "
            "perhaps, or name another folder in INTEROP_CACHE_DIR"
        )
    return (
        f"the cache cannot be written:{place} ({error.strerror}); name a folder that can in the environment variable "
        "INTEROP_CACHE_DIR"
    )
