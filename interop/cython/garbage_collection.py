"""Keeps the garbage collector out of a translation, whose many objects it would follow through all of torch's."""

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
    """While this lasts, in any thread, reference cycles are not collected; unless they were not anyway."""
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
    """In a child process, where the other threads are not."""
    for thread in list(_inside):
        if thread != threading.get_ident():
            _leave(thread)
    _lock.release()


os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_go_on)
