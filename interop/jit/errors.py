"""`BuildError`: what is wrong, in the words of Cython or the compiler, beside the lines that were written."""

import errno
import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from interop.paths import get_cache_dir

__all__ = ["BuildError", "CacheError", "Diagnostic", "message_of"]

SHOWN = 5
"""So many errors are shown; the first of them is mostly the cause of the rest."""


@dataclass(frozen=True)
class Diagnostic:
    """One error in a source.

    Attributes
    ----------
    message
        What Cython or the compiler says, on one line.
    path
        The file; for the texts of `load_inline`, ``cython_source`` or ``cpp_source``. None where it is not known.
    line, column
        Where it is, counted from 1; None where that is not known.
    text
        The line itself.
    hint
        What to write instead, where that is known.
    """

    message: str
    path: str | None = None
    line: int | None = None
    column: int | None = None
    text: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        hint = [f"    hint: {self.hint}"] if self.hint else []
        if self.path is None:
            return "\n".join([self.message, *hint])
        place = ":".join(str(part) for part in (_shortest(self.path), self.line, self.column) if part is not None)
        lines = [f"{place}: {self.message}"]
        if self.text is not None and self.text.strip():
            lines.append(f"    {self.text.expandtabs(1).rstrip()}")
            if self.column is not None:
                lines.append(f"    {' ' * (self.column - 1)}^")
        return "\n".join([*lines, *hint])


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


def _shortest(path: str) -> str:
    """As a person would write it in the current folder."""
    if not os.path.isabs(path):
        return path
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
