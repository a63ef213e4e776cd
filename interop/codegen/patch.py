"""Cython's compiler has no hooks for what it decides, so methods of it are replaced for the time of a translation."""

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def replaced(owner: type, name: str, make: Callable[[Callable], Callable]) -> Iterator[None]:
    """While this lasts, the method `name` of `owner` is what `make` makes of the original."""
    original = getattr(owner, name)
    setattr(owner, name, make(original))
    try:
        yield
    finally:
        setattr(owner, name, original)
