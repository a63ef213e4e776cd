"""`Finding`: one line of the doctor's report."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Finding", "Level", "ok", "problem", "warning"]


class Level(StrEnum):
    """The severity: a problem makes something fail, a warning may do so."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """A result of the doctor."""

    subject: str  # a word or two
    text: str  # one line
    level: Level = Level.OK
    fix: str = ""  # words and commands; empty if nothing is wrong


def ok(subject: str, text: str) -> Finding:
    """Something that is as it should be."""
    return Finding(subject, text)


def warning(subject: str, text: str, fix: str) -> Finding:
    """Something that may go wrong."""
    return Finding(subject, text, Level.WARNING, fix)


def problem(subject: str, text: str, fix: str) -> Finding:
    """Something that is wrong."""
    return Finding(subject, text, Level.PROBLEM, fix)
