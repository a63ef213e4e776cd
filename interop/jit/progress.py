"""Says on a terminal what a build is at; says nothing elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]


@contextmanager
def progress(name: str) -> Iterator[Callable[[str], None]]:
    """Show a line about the module `name`. Call what it gives with a few words when another step begins."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda step: None
        return
    from rich.console import Console  # here, because its import takes longer than what else a loaded module takes

    with Console(stderr=True, highlight=False).status(f"{name}: building") as status:
        yield lambda step: status.update(f"{name}: {step}")
