"""What is kept on disk: folders named by what they were made from, the oldest of which go when there is too much.

``KIND/KEY/`` is an entry, ``locks/KIND-KEY`` its lock. The date of the folder is when the entry was last used.
"""

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from interop.jit.errors import CacheError
from interop.jit.lock import locked, try_lock
from interop.paths import get_cache_dir, keep_private, make_cache_dir

__all__ = ["KINDS", "Entry", "entries", "evict", "limit", "prepare", "root"]

KINDS = {
    "modules": "modules",
    "objects": "objects of C++ and CUDA sources",
    "headers": "precompiled headers",
    "support": "parts that modules share",
}
LIMIT = 2 << 30
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def root() -> Path:
    """Where the entries lie."""
    return get_cache_dir() / "jit"


def prepare(name: str) -> None:
    """Make the folder if there is none; a CacheError for the module `name` if others could put modules there."""
    try:
        make_cache_dir()
        folder = root()
        folder.mkdir(mode=0o700, exist_ok=True)
        keep_private(folder)
    except PermissionError as error:
        if error.errno is not None:  # the system's, of a folder that cannot be made
            raise
        raise CacheError(name, str(error)) from None
    state = os.stat(folder)
    if state.st_uid == os.geteuid() and state.st_mode & 0o011 and any(map(_is_open, _below(folder))):
        folder.chmod(0o700)


def _below(folder: Path) -> Iterator[str]:
    """The kinds, and their entries."""
    for kind in (*KINDS, "locks"):
        yield str(folder / kind)
        with contextlib.suppress(OSError), os.scandir(folder / kind) as found:
            yield from [one.path for one in found]


def _is_open(path: str) -> bool:
    try:
        return bool(os.stat(path).st_mode & 0o022)
    except OSError:
        return False


def limit() -> int:
    """So many bytes may be kept: ``$INTEROP_CACHE_LIMIT``, such as ``500M`` or ``4G``; 2 GiB without it."""
    text = os.environ.get("INTEROP_CACHE_LIMIT", "")
    if not text:
        return LIMIT
    found = re.fullmatch(r"(\d+)([KMG]?)", text.strip().upper())
    if not found:
        raise ValueError(f"INTEROP_CACHE_LIMIT must be a number of bytes, such as 500M or 4G, got {text!r}")
    return int(found[1]) * _UNITS[found[2]]


@dataclass(frozen=True)
class Entry:
    """A folder of the cache, which need not exist yet."""

    kind: str
    key: str

    @property
    def folder(self) -> Path:
        return root() / self.kind / self.key

    @property
    def _lock(self) -> Path:
        return root() / "locks" / f"{self.kind}-{self.key}"

    def alone(self, wait: Callable[[], None] = lambda: None):
        """A context in which nobody else uses the entry."""
        return locked(self._lock, wait=wait)

    def shared(self):
        """A context in which nobody removes the entry."""
        return locked(self._lock, shared=True)

    def use(self) -> None:
        """Notes that it was used now, where that can be noted."""
        with contextlib.suppress(OSError):
            os.utime(self.folder)

    def size(self) -> int:
        # Not Path.rglob, which raises where another process removes a folder meanwhile.
        return sum(_size(os.path.join(at, name)) for at, _, names in os.walk(self.folder) for name in names)

    def last_used(self) -> float:
        try:
            return self.folder.stat().st_mtime
        except OSError:
            return 0.0

    def remove(self) -> bool:
        """Whether it could be removed: what somebody uses just now cannot."""
        with try_lock(self._lock) as free:
            if free:
                # All at once, so that nobody who is killed meanwhile leaves half of it under its name.
                gone = self.folder.with_name(f"removed-{secrets.token_hex(4)}")
                with contextlib.suppress(OSError):
                    self.folder.rename(gone)
                    shutil.rmtree(gone, ignore_errors=True)
                self._lock.unlink(missing_ok=True)
            return free


def entries() -> Iterator[Entry]:
    """All entries that there are."""
    for kind in KINDS:
        with contextlib.suppress(OSError):
            for folder in os.scandir(root() / kind):
                yield Entry(kind, folder.name)


def evict(bound: int) -> None:
    """Removes what was used longest ago, until no more than `bound` bytes are left."""
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
        return 0  # removed meanwhile
