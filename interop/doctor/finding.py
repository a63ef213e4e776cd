"""`Finding`: one line of what the doctor has to say."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Finding", "Level", "ok", "problem", "warning"]


class Level(StrEnum):
    """How bad it is: a problem makes something fail, a warning may."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """What was found."""

    subject: str  # what it is about, in a word or two
    text: str  # what was found, in one line
    level: Level = Level.OK  # how bad it is
    fix: str = ""  # what to do about it, in words and commands; empty if nothing is wrong


def ok(subject: str, text: str) -> Finding:
    """Something that is as it should be."""
    return Finding(subject, text)


def warning(subject: str, text: str, fix: str) -> Finding:
    """Something that may go wrong."""
    return Finding(subject, text, Level.WARNING, fix)


def problem(subject: str, text: str, fix: str) -> Finding:
    """Something that is wrong."""
    return Finding(subject, text, Level.PROBLEM, fix)
