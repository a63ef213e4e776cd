"""Turn the garbage collector off while many objects are made: torch's modules, or the tree of a translation.

Each collection would visit them all, and those of torch.
"""

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_collections"]

_lock = threading.RLock()
_inside: list[int] = []
"""The threads for which the collector is off."""


@contextmanager
def without_collections() -> Iterator[None]:
    """While any thread is in this context, reference cycles are not collected. Restores what the first one found."""
    thread = threading.get_ident()
    with _lock:
        paused = bool(_inside) or gc.isenabled()
        if paused:
            _inside.append(thread)
            gc.disable()
    try:
        yield
    finally:
        with _lock:
            if paused:
                _leave(thread)


def _leave(thread: int) -> None:
    _inside.remove(thread)
    if not _inside:
        gc.enable()


def _go_on() -> None:
    """In a child process, leave on behalf of the other threads, which do not exist there."""
    for thread in list(_inside):
        if thread != threading.get_ident():
            _leave(thread)
    _lock.release()


# A fork takes this lock after that of a translation, which takes it while it holds its own: hooks run in reverse order.
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_go_on)
