"""The manifest of a build: the files that it has read, to decide whether a new build would read the same.

It also lists files that were searched for and not found: a new file earlier in a search path would be read instead of
the one that was found. The content of the cache is checked too, because a disk may have lost a part of it.
"""

import dataclasses
import errno
import functools
import json
import os
import re
import sys
import sysconfig
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import NoReturn, TypeVar

import torch

from interop import private
from interop.cython import versions
from interop.errors import Error
from interop.jit.cache_folder import root
from interop.jit.cache_key import CPU, CUDA, file_digest, file_states, machine_environment
from interop.paths import get_include, get_pxd_dir, get_stable_dir

__all__ = [
    *("DamagedError", "Manifest", "absent_libraries", "absent_shadowing", "find", "found_on_sys_path", "is_fixed"),
    *("read", "write"),
]

NAME = "manifest.json"
MAX_SIZE = 64 << 20
"""Maximum number of bytes read from a manifest, many times its usual size."""
T = TypeVar("T")
CHANGED = "changed while it was built"
_KERNEL = ("/proc", "/sys", "/sys/kernel/tracing", "/sys/kernel/debug")
"""Where the kernel's own files are: some of them have no end, and some are read only when something happens."""
_SYSTEM = ("/usr/include/", "/usr/lib/", "/lib/", "/lib64/")
_PACKAGES = re.compile(r"/(?:dist|site)-packages/")
_LINKED = re.compile(r"\.(?:a|o|so)(?:\.\d+)*$")
"""Files for the linker, which may be large, so the check compares their sizes and dates."""


class DamagedError(Error):
    """The content of the cache differs from what was written. `private.warn` reports it after the new build."""


@dataclass(frozen=True)
class Manifest:
    """The record of a finished build; a folder without one is not a build."""

    module: str  # the file to import, in the folder of the build; empty if the build makes none
    files: dict[str, str | None]  # hashes of all files that were read, by path; for libraries and objects, their states
    absent: list[str]  # files that were not found, and would be read if they existed
    # Declarations found only through `sys.path`, and the entries that have them.
    on_sys_path: dict[str, str | None]
    made: dict[str, str]  # hashes of the files that were made and will be used, by name
    environment: dict[str, object]  # the `machine_environment` that the build depends on, as it was then

    def is_well_formed(self) -> bool:
        """Whether `write` could have written it: the types, the paths, and the names of files in the folder."""
        return (
            all(isinstance(one, dict) for one in (self.files, self.on_sys_path, self.made, self.environment))
            and isinstance(self.absent, list)
            and all(map(_is_path, [*self.files, *self.absent, *self.on_sys_path, *self.made]))
            and all(os.path.basename(name) == name not in ("", ".", "..") for name in self.made)
            and isinstance(self.module, str)
            and self.module in ("", *self.made)
            and self.environment.keys() <= {CPU, CUDA}
        )

    def is_current(self) -> bool:
        """Whether a build would now read the same."""
        return (
            not any(map(os.path.exists, self.absent))
            and self.on_sys_path == _entries(self.on_sys_path)
            and self.environment == machine_environment(self.environment)
            and all(_state(path) == state for path, state in self.files.items())
        )

    def is_whole(self, folder: Path) -> bool:
        """Whether `folder` has all files of the build. Raise `DamagedError` if their content has changed."""
        try:
            found = _read(folder, self.made, private.digest)
        except FileNotFoundError:
            return False  # for example after a cleaner of old files
        return found == self.made or _damaged(folder)


def read(folder: Path, needed: Sequence[str] = ()) -> Manifest | None:
    """The manifest of the build in `folder`; None if there is none.

    `needed` names the files that such a build makes, first the one to import. Raise `DamagedError` if the manifest does
    not list them, the file is not a manifest, belongs to another entry of the cache, or the entry is ours and others
    could write to it. Raise `NotPrivateError` if the entry belongs to another user, or others could have put
    the whole entry there.
    """
    try:
        # Read no more than its size, because a read allocates the requested size.
        data = _read(folder, [NAME], lambda file: file.read(min(MAX_SIZE, os.fstat(file.fileno()).st_size)))[NAME]
    except FileNotFoundError:
        return _damaged(folder) if os.path.islink(folder) else None  # a build is no link
    text = private.unseal(_entry(folder), data)  # before any of the data is used
    if text is None:
        _damaged(folder)
    try:
        found = Manifest(**json.loads(text))
    except (TypeError, ValueError, RecursionError):
        _damaged(folder)
    if not found.is_well_formed() or (needed and not (found.module == needed[0] and found.made.keys() >= {*needed})):
        _damaged(folder)
    return found


def find(folder: Path, needed: Sequence[str] = ()) -> Manifest | None:
    """The manifest of the build in `folder`, if the build is complete and unchanged; `needed` is that of `read`."""
    try:
        found = read(folder, needed)
        return found if found and found.is_whole(folder) else None
    except DamagedError:
        return None


def _entry(folder: Path) -> str:
    """The name of the cache entry that is or contains `folder`."""
    return os.path.join(*folder.relative_to(root()).parts[:2])


def _read(folder: Path, names: Iterable[str], use: Callable[[BufferedReader], T]) -> dict[str, T]:
    """The result of `use` for each of the files `names` in `folder`, by name."""
    found = {}
    try:
        with private.open_folder(folder) as handle:
            private.check(str(folder), os.fstat(handle), sticky=False)
            for name in names:
                with private.open_file(handle, folder / name) as file:
                    found[name] = use(file)
    except private.WritableError:
        with private.open_folder((root() / _entry(folder)).parent):  # raises if more than the entry is writable
            _damaged(folder)
    except OSError as error:
        if private.is_damage(error) or (error.errno == errno.EACCES and private.is_locked(error.filename)):
            _damaged(folder)
        raise
    return found


def _damaged(folder: Path) -> NoReturn:
    private.note(private.damaged(root() / _entry(folder)))
    raise DamagedError(f"the content of {folder} is not what was written there")


def write(
    folder: Path,
    module: str,
    files: Iterable[str],
    started: float,
    *,
    made: Iterable[str] | None = None,
    absent: Sequence[str] = (),
    on_sys_path: Iterable[str] = (),
    environment: Iterable[str] = (),
) -> None:
    """Make the content of `folder` a finished build, which began at the time `started` and read `files`.

    `made` names the files that will be used, by default all files in the folder.
    """
    partial = folder / f"{NAME}.partial"
    for old in (folder / NAME, partial):
        old.unlink(missing_ok=True)
    names = [one.name for one in folder.iterdir() if one.is_file()] if made is None else [*made]
    for name in names:
        (folder / name).chmod((folder / name).stat().st_mode & 0o755)  # for a umask such as 002
    digests = _read(folder, names, private.digest)
    states = {}
    for path in sorted(files):
        # If a file has changed since the start, it is unknown which state the build read.
        states[path] = CHANGED if _changed_since(path, started) or _is_of_kernel(path) else _state(path)
    result = Manifest(module, states, list(absent), _entries(on_sys_path), digests, machine_environment(environment))
    partial.touch(0o600)
    partial.write_bytes(private.seal(_entry(folder), json.dumps(dataclasses.asdict(result)).encode()))
    partial.replace(folder / NAME)


def is_fixed(path: str) -> bool:
    """Whether a file changes only with inputs that are in the cache key: torch, Python, the system, and our own."""
    path = os.path.abspath(path)
    # A distribution's Python packages are below /usr/lib, and are upgraded by themselves.
    in_key = () if _PACKAGES.search(path) else _SYSTEM
    return path.startswith((*_folders_in_key(str(root())), *in_key))


def absent_shadowing(files: Collection[str], search_path: Iterable[str]) -> list[str]:
    """Paths that do not exist, and at which a file or folder would be read in place of one of `files`.

    The result assumes that the folders of the `search_path` and of the files were searched in any order. So it has
    some paths that would not be read, which at worst costs the seconds of an unnecessary build. For a folder
    that does not exist, it has the folder and no path below.
    """
    files = [os.path.abspath(path) for path in files]
    searched = list(dict.fromkeys(map(os.path.abspath, search_path)))
    beside = map(os.path.dirname, files)
    watched = [folder for folder in dict.fromkeys([*searched, *beside]) if not is_fixed(os.path.join(folder, "file"))]
    bases = [*(os.path.join(folder, "") for folder in searched), *_fixed_folders(str(root()))]
    names = {
        form for path in files for base in bases if path.startswith(base) for form in _forms(path.removeprefix(base))
    }
    return sorted({absent for folder in watched for name in names if (absent := _first_absent(folder, name))})


def absent_libraries(names: Iterable[str], folders: Iterable[str], flags: Iterable[str]) -> list[str]:
    """The same for the libraries that a module is linked with: those given by name, and those in the linker's flags."""
    words = list(flags)
    names = [*names, *(word[2:] for word in words if word.startswith("-l"))]
    folders = [*folders, *(word[2:] for word in words if word.startswith("-L"))]
    paths = [
        os.path.abspath(os.path.join(folder, f"lib{name}{suffix}"))
        for folder in folders
        for name in names
        for suffix in (".so", ".a")
    ]
    return [path for path in paths if not os.path.exists(path) and not is_fixed(path)]


def found_on_sys_path(files: Iterable[str], search_path: Iterable[str]) -> list[str]:
    """The names of those .pxd among `files` that Cython found through `sys.path`, and not in the `search_path`."""
    before = tuple(os.path.join(os.path.abspath(folder), "") for folder in search_path)
    paths = [path for path in map(os.path.abspath, files) if not is_fixed(path) and not path.startswith(before)]
    bases = {os.path.join(os.path.abspath(entry), "") for entry in sys.path}
    return sorted({path.removeprefix(base) for path in paths for base in bases if path.startswith(base)})


def _entries(names: Iterable[str]) -> dict[str, str | None]:
    """For each name of a .pxd, the first entry of `sys.path` that has the file, in any of its forms."""
    entries = list(map(os.path.abspath, sys.path))
    return {
        name: next((e for e in entries if any(os.path.isfile(os.path.join(e, form)) for form in _forms(name))), None)
        for name in names
    }


def _forms(name: str) -> Iterator[str]:
    """The names under which Cython looks for a .pxd: as a module, as a package, and with dots."""
    yield name
    stem, suffix = os.path.splitext(name)
    if suffix == ".pxd":
        stem = stem.removesuffix(f"{os.sep}__init__")
        yield from (f"{stem}.pxd", f"{stem}{os.sep}__init__.pxd", f"{stem.replace(os.sep, '.')}.pxd")


def _first_absent(folder: str, name: str) -> str | None:
    path = folder
    for part in name.split(os.sep):
        path = os.path.join(path, part)
        if not os.path.exists(path):
            return path
    return None


def _fixed_folders(cache: str) -> tuple[str, ...]:
    """The folders of files that change only with the cache key, each with a slash at the end."""
    return (*_folders_in_key(cache), *_SYSTEM)


@functools.cache
def _folders_in_key(cache: str) -> tuple[str, ...]:
    """Those of them that belong to torch, Cython, Python and this package."""
    cython, torch_headers = versions.folder(), Path(torch.__file__).parent / "include"
    folders: list[str | Path] = [
        *(torch_headers / "torch" / "csrc" / "api" / "include", torch_headers, torch_headers.parent),
        *(cython / "Includes", cython, sysconfig.get_path("include")),
        *(cache, get_include(), get_pxd_dir(), get_stable_dir()),
    ]
    return tuple(os.path.join(folder, "") for folder in folders)


def _is_path(path: object) -> bool:
    """Whether the system accepts a path. JSON has text that it does not accept."""
    try:
        return isinstance(path, str) and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _state(path: str) -> str | None:
    if not os.path.isfile(path) or _is_of_kernel(path):
        return None  # a pipe in the place of a file would be read for ever
    if not _LINKED.search(path):
        return file_digest(path)
    try:
        return json.dumps(file_states([path]))
    except OSError:
        return None


def _is_of_kernel(path: str) -> bool:
    try:
        return os.stat(path).st_dev in _devices_of_kernel()
    except OSError:
        return False


@functools.cache
def _devices_of_kernel() -> set[int]:
    return {os.stat(folder).st_dev for folder in _KERNEL if os.path.ismount(folder)} - {os.stat("/").st_dev}


def _changed_since(path: str, time: float) -> bool:
    """Whether a file has changed since `time`, even if its date is older now.

    The modification time, which anyone can set, is no evidence: a file with a date in the future would look new at
    each load.
    """
    try:
        return os.stat(path).st_ctime > time
    except OSError:
        return True
