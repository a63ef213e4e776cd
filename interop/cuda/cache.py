"""An on-disk cache of code that NVRTC has compiled, so that the next run of a program need not wait.

Each entry is a file below `folder()`, named by a hash of all its inputs.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path

from interop.cuda.nvrtc import Image
from interop.paths import get_cache_dir, keep_private, make_cache_dir
from interop.private import damaged, is_damage, make_folders, note, open_file, open_folder, remove, seal, unseal, warn

__all__ = ["MAX_ENTRIES", "folder", "key", "read", "write"]

FORMAT = 2
MAX_ENTRIES = 512
"""Maximum number of files kept; beyond it, the least recently used are removed."""


def folder() -> Path:
    """``nvrtc`` in the folder of the cache: see `get_cache_dir`."""
    return get_cache_dir() / "nvrtc"


def key(*parts: object) -> str:
    """The name of the entry made from `parts`, whose `repr` must identify them."""
    return hashlib.sha256(repr((FORMAT, parts)).encode()).hexdigest()


def read(name: str) -> Image | None:
    """The entry, or None. A damaged entry is removed, with a warning."""
    path = folder() / name
    try:
        make_cache_dir()  # raises if others can write to it
        keep_private(folder())
        with open_folder(folder()) as handle:
            content = _content(handle, path)
    except OSError:
        return None
    image = None if content is None else _image(content)
    if image is None:
        remove(path)
        note(damaged(path))
        warn()
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # mark it as used now
    return image


def _image(content: bytes) -> Image | None:
    """The image in the content of an entry; None if `write` could not have written it."""
    head, _, code = content.partition(b"\n")
    try:
        fields = json.loads(head)
        entries, instances, log = (fields[name] for name in ("entries", "instances", "log"))
        names = [log, *entries, *instances, *instances.values()]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return Image(code, tuple(entries), instances, log) if all(isinstance(name, str) for name in names) else None


def _content(handle: int, path: Path) -> bytes | None:
    """The content written at `path`, in the open folder; None if the file is damaged."""
    try:
        with open_file(handle, path) as file:
            return unseal(path.name, file.read())
    except OSError as error:
        if is_damage(error):
            return None
        raise


def write(name: str, image: Image) -> None:
    """Write the entry. If that is impossible, do nothing, because the entry is optional."""
    head = {"entries": image.entries, "instances": dict(image.instances), "log": image.log}
    content = json.dumps(head).encode() + b"\n" + image.code
    place = folder()
    with contextlib.suppress(OSError):
        make_cache_dir()
        make_folders(place)
        handle, temporary = tempfile.mkstemp(dir=place, prefix=".")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(seal(name, content))
            os.replace(temporary, place / name)  # so that another process reads a whole file or none
        except BaseException:
            os.unlink(temporary)
            raise
        _prune(place)
    warn()


def _prune(place: Path) -> None:
    entries = list(os.scandir(place))
    if len(entries) > MAX_ENTRIES:
        by_age = sorted(entries, key=lambda entry: entry.stat().st_mtime)
        for entry in by_age[: len(entries) - MAX_ENTRIES * 3 // 4]:
            with contextlib.suppress(OSError):
                os.unlink(entry.path)
