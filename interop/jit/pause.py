"""Keeps the garbage collector out of a translation, whose many objects it would follow through all of torch's."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_collections"]

_lock = threading.Lock()
_inside = 0


@contextmanager
def without_collections() -> Iterator[None]:
    """While this lasts, in any thread, reference cycles are not collected; unless they were not anyway."""
    global _inside
    with _lock:
        paused = _inside or gc.isenabled()
        if paused:
            _inside += 1
            gc.disable()
    try:
        yield
    finally:
        with _lock:
            if paused:
                _inside -= 1
                if not _inside:
                    gc.enable()
