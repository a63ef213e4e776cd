"""The options of `with_arrays`, which every part of a call reads."""

import dataclasses
from collections.abc import Callable
from typing import Any

__all__ = ["Options", "name_of"]


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """The checked arguments of `with_arrays`."""

    detach: bool = False
    devices: frozenset[str] = frozenset({"cpu"})
    may_copy: bool = True
    mutates_args: tuple[str | int, ...] = ()
    callbacks: bool = False
    vjp: Callable[..., Any] | None = None


def name_of(function: Any) -> str:
    """The name of a function for messages."""
    return getattr(function, "__name__", type(function).__name__)
