"""The dynamic loader's view of a library: the files that it loads, and the symbols that they define.

Only `try_import` runs code of a library. The rest follows the loader's rules and reads the files, because to load a
library is to run its constructors.
"""

import functools
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from interop.doctor.elf import Library, NotALibraryError, read
from interop.doctor.environment import loaded_libraries

__all__ = ["Closure", "Imported", "closure", "try_import"]

_IMPORT = """
import importlib, json, resource, sys
root, name, torch_first, report, limit = sys.argv[1:]
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
if soft == resource.RLIM_INFINITY or soft > int(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), hard))
sys.path.insert(0, root)
if torch_first:
    import torch
importlib.import_module(name)
with open("/proc/self/maps", errors="surrogateescape") as maps:
    paths = {line.split(None, 5)[5].rstrip("\\n") for line in maps if "/" in line}
with open(report, "w") as file:
    json.dump(sorted(paths), file)
"""

_PATIENCE = 300
"""Maximum time of an import in seconds, many times what torch needs on a slow machine."""
_OUTPUT_LIMIT = 1 << 20
"""Maximum number of bytes read of what an import has printed. The error is at its end."""
_FILE_LIMIT = 256 << 20
"""Maximum size of a file that an import writes, because a module that prints without end would fill the disk."""


@dataclass
class Closure:
    """A library and all libraries that it is linked to, directly or indirectly, and those of Python."""

    libraries: dict[Path, Library]  # by file; the library itself is the first
    # By name, each library that is not found or cannot be read: which library needs it, and the error if there is one.
    missing: dict[str, tuple[str, str]] = field(default_factory=dict)

    def undefined(self, library: Library) -> list[str]:
        """The symbols that `library` uses and no library defines."""
        return sorted(library.undefined.difference(*(other.defined for other in self.libraries.values())))

    def by_name(self) -> dict[str, Library]:
        """The libraries by the names of their files, and by their own names."""
        found: dict[str, Library] = {}
        for path, one in self.libraries.items():
            for name in filter(None, (path.name, one.soname)):
                found.setdefault(name, one)
        return found


def closure(library: Library, torch_lib: Path | None) -> Closure:
    """The closure of `library`, in a Python process that has imported the torch whose libraries are in `torch_lib`."""
    program = _program()  # modules call its functions
    result = Closure({library.path: library, program.path: program})
    files = {path.resolve() for path in result.libraries}
    absent: dict[str, tuple[str, str]] = {}  # like `missing`
    # Breadth-first like the loader, because a library inherits the RPATH of the first library that needs it. Each
    # library is queued with the folders that it inherits.
    waiting: deque[tuple[Library, list[Path]]] = deque()
    waiting.append((library, [] if program.has_runpath else program.folders))
    waiting.append((program, []))
    while waiting:
        one, inherited = waiting.popleft()
        own = [folder for folder in dict.fromkeys(one.folders) if os.path.isdir(folder)]
        handed_on = inherited if one.has_runpath else list(dict.fromkeys([*own, *inherited]))
        before, after = ([], own) if one.has_runpath else (handed_on, [])
        for name in one.needed:
            unreadable = ""
            for path in filter(os.path.isfile, _candidates(one, name, before, after, torch_lib)):
                try:
                    found = read(path)
                except PermissionError as error:  # the loader passes over it
                    unreadable = unreadable or f"{path} {error}"
                    continue
                except (NotALibraryError, OSError) as error:
                    result.missing.setdefault(name, (one.path.name, f"{path} {error}"))
                    break
                if (found.machine, found.bits) == (library.machine, library.bits):  # the loader skips others
                    if path.resolve() not in files:
                        files.add(path.resolve())
                        result.libraries[path] = found
                        waiting.append((found, handed_on))
                    break
            else:
                absent.setdefault(name, (one.path.name, unreadable))
    # If another library leads to it, it is loaded already: the loader compares names.
    loaded = result.by_name()
    result.missing |= {name: need for name, need in absent.items() if name not in loaded}
    return result


def _candidates(
    one: Library, name: str, before: list[Path], after: list[Path], torch_lib: Path | None
) -> Iterator[Path]:
    """The paths at which the loader searches for the library `name` that `one` needs.

    The user's own folders, of LD_LIBRARY_PATH, come between the folders `before` and `after`.
    """
    if "/" in name:
        yield one.expanded(name)
        return
    is_torchs = torch_lib is not None and os.path.isfile(torch_lib / name)
    # torch's libraries are loaded before, from wherever they are. A copy in a folder that the module names counts,
    # because it is loaded if torch is not imported before.
    folders = [*before, *([] if is_torchs else _folders_of_user()), *after]
    yield from (folder / name for folder in folders)
    if torch_lib is not None:
        yield torch_lib / name
    yield from _system_libraries().get(name, ())
    yield from (folder / name for folder in _system_folders())
    yield from _loaded().get(name, ())  # by whatever rules


def _program() -> Library:
    """The program of this process."""
    return read(Path(os.path.realpath("/proc/self/exe")))


def _folders_of_user() -> list[Path]:
    """The folders of LD_LIBRARY_PATH. An empty entry is the current folder, but an empty variable has no entry."""
    value = os.environ.get("LD_LIBRARY_PATH")
    return [_program().expanded(folder) for folder in re.split("[:;]", value)] if value else []


@functools.cache
def _system_libraries() -> dict[str, list[Path]]:
    """The files in the loader's cache, by the name of the library."""
    try:
        listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, errors="surrogateescape")
    except OSError:
        return {}  # not every system has a cache
    found: dict[str, list[Path]] = {}
    for name, path in re.findall(r"^\t(.+?) \(.*\) => (.+)$", listed.stdout, re.MULTILINE):
        found.setdefault(name, []).append(Path(path))
    return found


@functools.cache
def _loaded() -> dict[str, list[Path]]:
    """The libraries in this process, by the names of their files."""
    found: dict[str, list[Path]] = {}
    for path in map(Path, loaded_libraries()):
        found.setdefault(path.name, []).append(path)
    return found


@functools.cache
def _system_folders() -> list[Path]:
    """The folders that the loader searches last."""
    folders = [Path(base, lib) for base in ("/", "/usr") for lib in ("lib64", "lib")]
    multiarch = sysconfig.get_config_var("MULTIARCH")
    return [*(folder / multiarch for folder in folders if multiarch and folder.name == "lib"), *folders]


@dataclass(frozen=True)
class Imported:
    """The result of an import in a separate process: the libraries in that process, or the last line of an error."""

    libraries: tuple[str, ...] = ()
    error: str = ""


def try_import(name: str, root: Path, torch_first: bool) -> Imported:
    """Import the module `name` from the folder `root` in a new process, optionally after torch."""
    variables = os.environ | {"PYTHONWARNINGS": "ignore"}
    # Files and not pipes: a process that the module starts may keep a pipe open after the import has ended. The report
    # has its own file, because libraries and modules print anything, also after it.
    with tempfile.NamedTemporaryFile() as report, tempfile.TemporaryFile() as errors:
        arguments = [str(root), name, "torch" if torch_first else "", report.name, str(_FILE_LIMIT)]
        try:
            status = subprocess.run(
                [sys.executable, "-P", "-c", _IMPORT, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=variables,
                timeout=_PATIENCE,
            ).returncode
        except subprocess.TimeoutExpired:
            return Imported(error=f"the import did not finish within {_PATIENCE} seconds")
        reported, said = report.read(), _end_of(errors).strip()
    if status > 0 and said:
        return Imported(error=said.rpartition("\n")[2])
    try:
        return Imported(error=_end(status)) if status else Imported(tuple(json.loads(reported)))
    except ValueError:  # it ended before the report was complete
        return Imported(error=_end(status))


def _end_of(file: IO[bytes]) -> str:
    """The last part of a file, as text."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - _OUTPUT_LIMIT))
    return os.fsdecode(file.read(_OUTPUT_LIMIT))


def _end(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"the process ended with status {status}"
    try:
        return f"the process was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"the process was ended by signal {-status}"
