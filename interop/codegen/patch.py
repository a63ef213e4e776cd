"""Cython's compiler has no hooks for what it decides, so methods of it are replaced for the time of a translation."""

import contextlib
from collections.abc import Callable, Iterator
from types import ModuleType


@contextlib.contextmanager
def replaced(owner: type | ModuleType, name: str, make: Callable[[Callable], Callable]) -> Iterator[None]:
    """While this lasts, the method or function `name` of `owner` is what `make` makes of the original."""
    original = getattr(owner, name)
    setattr(owner, name, make(original))
    try:
        yield
    finally:
        setattr(owner, name, original)
