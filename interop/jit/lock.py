"""One process, and one thread, at a time: locks on files, which the kernel releases when their holder dies."""

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["locked", "try_lock"]

_handles: dict[int, int] = {}
"""The threads that have opened locks, by the handle."""


@contextmanager
def locked(path: Path, *, shared: bool = False, wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock `path`, alone or with others that share it. `wait` is called once if somebody else holds it.

    Each call opens the file anew, so threads wait for one another as processes do. Do not take a lock twice.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    while True:
        handle = _open(path)
        try:
            try:
                fcntl.flock(handle, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                wait()
                wait = _nothing
                fcntl.flock(handle, kind)
            if not _is_still(path, handle):
                continue  # it was removed together with what it guards; others lock the new file
            yield
            return
        finally:
            _unlock(handle)


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold the lock `path` alone if nobody has it; gives whether that is so."""
    handle = _open(path)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _close(handle)
        yield False
        return
    try:
        yield _is_still(path, handle)
    finally:
        _unlock(handle)


def _open(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    _handles[handle] = threading.get_ident()
    return handle


def _close(handle: int) -> None:
    _handles.pop(handle, None)
    os.close(handle)


def _unlock(handle: int) -> None:
    """A child that was forked meanwhile has the file open as well, so to close it here would not be enough."""
    fcntl.flock(handle, fcntl.LOCK_UN)
    _close(handle)


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def _nothing() -> None:
    pass


def _close_those_of_others() -> None:
    """In a child process: the threads that hold these are not there, and if the parent dies, its locks must be free."""
    for handle, thread in list(_handles.items()):
        if thread != threading.get_ident():
            _close(handle)


os.register_at_fork(after_in_child=_close_those_of_others)
