"""The cache on disk: folders named by a hash of their inputs, and the locks that guard them.

``KIND/KEY/`` is an entry, ``locks/KIND-KEY`` its lock, and the date of the folder its last use. When the cache grows
beyond its limit, the least recently used entries are removed.
"""

import contextlib
import errno
import fcntl
import os
import re
import secrets
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from interop.jit.diagnostics import CacheError
from interop.paths import get_cache_dir, keep_private, make_cache_dir
from interop.private import NotPrivateError, is_damage, make_folders, note, remove

__all__ = ["KINDS", "Entry", "entries", "evict", "limit", "locked", "prepare", "root", "try_lock"]

KINDS = {
    "modules": "modules",
    "objects": "objects of C++ and CUDA sources",
    "headers": "precompiled headers",
    "support": "parts that modules share",
}
LIMIT = 2 << 30
GUARD = "foreign"
"""The lock that a process holds while it removes what is in the place of another lock."""
POLL = 0.05
"""Seconds between two attempts to take a lock, for threads that must also notice an end of the build."""
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

_lock_holders: dict[int, int] = {}
"""The threads that have opened locks, by file descriptor."""


def root() -> Path:
    """The folder of the entries."""
    return get_cache_dir() / "jit"


def prepare(name: str) -> None:
    """Make the folder if there is none. Raise CacheError for module `name` if other users could put modules there."""
    try:
        make_cache_dir()
        make_folders(root())
        close()
    except NotPrivateError as error:
        raise CacheError(name, str(error)) from None


def close() -> None:
    """Close the folder to other users. Raise `NotPrivateError` if they could put modules there all the same."""
    keep_private(root())
    for kind in filter(Path.is_dir, map(root().joinpath, (*KINDS, "locks"))):
        keep_private(kind)


def limit() -> int:
    """Maximum number of bytes kept: ``$INTEROP_CACHE_LIMIT``, such as ``500M`` or ``4G``; 2 GiB by default."""
    text = os.environ.get("INTEROP_CACHE_LIMIT", "")
    if not text:
        return LIMIT
    found = re.fullmatch(r"0*([0-9]+)([KMG]?)", text.strip().upper())
    if not found:
        raise ValueError(f"INTEROP_CACHE_LIMIT must be a number of bytes, such as 500M or 4G, got {text!r}")
    return int(found[1][:18]) * _UNITS[found[2]]  # of a longer number any part is more than a disk has


@dataclass(frozen=True)
class Entry:
    """A folder of the cache, which may not exist yet."""

    kind: str
    key: str

    @property
    def folder(self) -> Path:
        return root() / self.kind / self.key

    @property
    def _lock(self) -> Path:
        return root() / "locks" / f"{self.kind}-{self.key}"

    def exclusive(
        self, wait: Callable[[], None] = lambda: None, stopped: threading.Event | None = None
    ) -> AbstractContextManager[None]:
        """A context in which no other thread or process uses the entry; the parameters are those of `locked`."""
        return locked(self._lock, wait=wait, stopped=stopped)

    def shared(self, stopped: threading.Event | None = None) -> AbstractContextManager[None]:
        """A context in which no thread or process removes the entry; `stopped` is that of `locked`."""
        return locked(self._lock, shared=True, stopped=stopped)

    def use(self) -> None:
        """Set the date of the last use to now, if that is possible."""
        with contextlib.suppress(OSError):
            os.utime(self.folder)

    def make_empty(self) -> None:
        """Make it an empty folder."""
        remove(self.folder)
        make_folders(self.folder)

    def size(self) -> int:
        """Its size on disk in bytes."""
        if self.folder.is_symlink():  # put there by others
            return 0
        # Not Path.rglob, which raises if another process removes a folder in the meantime.
        return sum(_size(os.path.join(at, name)) for at, _, names in os.walk(self.folder) for name in names)

    def last_used(self) -> float:
        """The date of the last use; 0 if the entry is gone."""
        try:
            return self.folder.lstat().st_mtime
        except OSError:
            return 0.0

    def remove(self) -> bool:
        """Remove the entry unless it is in use; return whether it was free."""
        with try_lock(self._lock) as free:
            if free:
                # Rename it first, so that a process that is killed here does not leave half of it under its name.
                gone = self.folder.with_name(f"removed-{secrets.token_hex(4)}")
                with contextlib.suppress(OSError):
                    self.folder.rename(gone)
                    remove(gone)  # which may be a file or a link that others have put there
                self._lock.unlink(missing_ok=True)
            return free


def entries() -> Iterator[Entry]:
    """All entries."""
    for kind in KINDS:
        with contextlib.suppress(OSError):
            for folder in os.scandir(root() / kind):
                yield Entry(kind, folder.name)


def evict(bound: int) -> None:
    """Remove the least recently used entries, until no more than `bound` bytes are left."""
    sizes = {entry: entry.size() for entry in entries()}
    total = sum(sizes.values())
    for entry in sorted(sizes, key=Entry.last_used):
        if total <= bound:
            return
        if entry.remove():
            total -= sizes[entry]


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_blocks * 512
    except OSError:
        return 0  # removed in the meantime


@contextmanager
def locked(
    path: Path,
    *,
    shared: bool = False,
    wait: Callable[[], None] = lambda: None,
    stopped: threading.Event | None = None,
) -> Iterator[None]:
    """Hold the lock on the file `path`, exclusive or shared. `wait` is called once if another holder has it.

    A thread of a build passes `stopped`, because no signal interrupts its wait. Once the event is set, the wait ends
    with CancelledError.

    The kernel releases the lock when its holder dies. Each call opens the file again, so threads wait for one another
    as processes do. The lock is not reentrant.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    while True:
        handle = _open_lock(path)
        try:
            try:
                _flock(path, handle, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                wait()
                wait = lambda: None  # noqa: E731
                if stopped is None:
                    _flock(path, handle, kind)
                elif stopped.wait(POLL):
                    raise CancelledError from None
                else:
                    continue
            if not _is_at(path, handle):
                continue  # it was removed together with its entry; others lock the new file
            yield
            return
        finally:
            _unlock(handle)


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Take the exclusive lock on the file `path` if it is free; yield whether it is held."""
    handle = _open_lock(path)
    try:
        _flock(path, handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _close_lock(handle)
        yield False
        return
    try:
        yield _is_at(path, handle)
    finally:
        _unlock(handle)


def _flock(path: Path, handle: int, kind: int) -> None:
    """Lock an open file; an error that the file system has no locks names the file."""
    try:
        fcntl.flock(handle, kind)
    except OSError as error:
        error.filename = str(path)
        raise


def _open_lock(path: Path) -> int:
    make_folders(path.parent)
    handle = _open_file(path)
    if handle is None:
        _remove_foreign(path)
        handle = _open_file(path)
    if handle is None:
        raise _foreign(path)
    _lock_holders[handle] = threading.get_ident()
    return handle


def _open_file(path: Path) -> int | None:
    """A descriptor of the file at `path`, which is made if nothing is there; None if something else is there."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as error:
        if is_damage(error):
            return None
        raise
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    return None


def _remove_foreign(path: Path) -> None:
    """Remove a folder, a link or a pipe from the place of a lock, and note it. A file stays, because it is a lock."""
    guard = path.with_name(GUARD)
    if path == guard:
        raise _foreign(path)
    # One process at a time, so that none removes the new file of another.
    with locked(guard):
        try:
            if stat.S_ISREG(path.lstat().st_mode):
                return  # another process was first
            gone = path.with_name(f"removed-{secrets.token_hex(4)}")
            path.rename(gone)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _foreign(path) from error
        remove(gone)
    note(f"torch-interop has removed {path}: it was in the place of a lock, and is not a file that torch-interop wrote")


def _foreign(path: Path) -> OSError:
    return OSError(errno.EEXIST, "this is not the file of a lock, so remove it", str(path))


def _close_lock(handle: int) -> None:
    _lock_holders.pop(handle, None)
    os.close(handle)


def _unlock(handle: int) -> None:
    # A child that was forked in the meantime has the file open too, so closing it here would not release the lock.
    with contextlib.suppress(OSError):  # where there are no locks, taking this one has failed already
        fcntl.flock(handle, fcntl.LOCK_UN)
    _close_lock(handle)


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def _close_locks_of_others() -> None:
    """In a child process, close the locks of other threads, so that they are free if the parent dies."""
    for handle, thread in list(_lock_holders.items()):
        if thread != threading.get_ident():
            _close_lock(handle)


os.register_at_fork(after_in_child=_close_locks_of_others)
