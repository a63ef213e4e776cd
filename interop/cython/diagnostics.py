"""`Diagnostic`: one error in a source, as Cython or a compiler reports it. This module does not import Cython."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["DIVISION", "GIL", "Diagnostic", "causes", "shortest_path"]

_CONVERSION = re.compile(r"Cannot (?:convert|assign type) (?!'tuple\d\[)")  # a tuple's is no consequence
GIL = re.compile(r".* not allowed without (?:the )?(?:gil|GIL)$")
DIVISION = (
    r"\buse_floordiv_or_a_float\b",
    "for an at.SymInt, write floordiv(n, 2), after: from interop cimport floordiv; for a float, n / 2.0",
)
"""What Cython and the C++ compiler say about the division of an at.SymInt, and the hint."""
_CRASH = re.compile(r"Compiler crash in ")
_NO_PXD = re.compile(r"'[\w.]+\.pxd' not found")
_NOT_CIMPORTED = re.compile(r"'(?:at|torch)' is not a cimported module")
_NO_MEMBER = re.compile(r"cimported module has no attribute ")


@dataclass(frozen=True)
class Diagnostic:
    """One error in a source.

    Attributes
    ----------
    message
        The message of Cython or the compiler, on one line.
    path
        The file; for the texts of `load_inline`, ``cython_source`` or ``cpp_source``. None if unknown.
    line, column
        The position, counted from 1; None if unknown.
    text
        The source line.
    hint
        What to write instead, if known.
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
        place = ":".join(str(part) for part in (shortest_path(self.path), self.line, self.column) if part is not None)
        lines = [f"{place}: {self.message}"]
        if self.text is not None and self.text.strip():
            lines.append(f"    {self.text.expandtabs(1).rstrip()}")
            if self.column is not None:
                lines.append(f"    {' ' * (self.column - 1)}^")
        return "\n".join([*lines, *hint])


def causes(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The errors that are not consequences of others. After an error, Cython continues with Python objects."""
    real = [one for one in found if not _CRASH.match(one.message)] or list(found)
    if any(_NOT_CIMPORTED.match(one.message) for one in real):
        real = [one for one in real if not _CONVERSION.match(one.message)]
    without_pxd = any(_NO_PXD.match(one.message) for one in real)
    kept: list[Diagnostic] = []
    for one in real:
        others = [other for other in real if other is not one and (other.path, other.line) == (one.path, one.line)]
        if _rank(one) < max(map(_rank, others), default=0):
            continue
        if one.hint and any(other.hint == one.hint and other in others for other in kept):
            continue
        if without_pxd and _NO_MEMBER.match(one.message):
            continue
        kept.append(one)
    return kept


def _rank(one: Diagnostic) -> int:
    """The lower of two errors in a line may be a consequence of the higher one."""
    return 0 if GIL.match(one.message) else 1 if _CONVERSION.match(one.message) else 2


def shortest_path(path: str) -> str:
    """A path relative to the current folder if it is below it; otherwise the path unchanged."""
    if not os.path.isabs(path):
        return path
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
