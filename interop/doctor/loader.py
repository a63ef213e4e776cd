"""The dynamic loader's view of a library: the files that it loads, the symbols that they define, and its errors."""

import json
import os
import signal
import subprocess
import sys
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from interop.doctor.elf import Library, NotALibraryError, read

__all__ = ["Closure", "Imported", "closure", "try_import"]

_MARK = "interop.doctor: "
"""The prefix of the reports of the child processes below, because libraries and modules may print too."""

# Load the libraries named on stdin, as the loader finds them, and print all libraries in the process, which include
# their dependencies.
_LOAD = f"""
import ctypes, json, sys
missing = {{}}
for name in json.load(sys.stdin):
    try:
        ctypes.CDLL(name)
    except OSError as error:
        missing[name] = str(error)
with open("/proc/self/maps", errors="surrogateescape") as maps:
    paths = {{line.split(None, 5)[5].rstrip("\\n") for line in maps if "/" in line}}
print("\\n{_MARK}" + json.dumps([missing, sorted(paths)]))
"""

_IMPORT = f"""
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
if sys.argv[3]:
    import torch
importlib.import_module(sys.argv[2])
with open("/proc/self/maps", errors="surrogateescape") as maps:
    paths = {{line.split(None, 5)[5].rstrip("\\n") for line in maps if "/" in line}}
print("\\n{_MARK}" + json.dumps(sorted(paths)))
"""

_PATIENCE = 300
"""Maximum time of an import in seconds, many times what torch needs on a slow machine."""


@dataclass
class Closure:
    """A library and all libraries that it is linked to, directly or indirectly."""

    libraries: dict[Path, Library]  # by file; the library itself is the first
    # By name, each library that is not found or cannot be loaded: which library needs it, and the loader's message.
    missing: dict[str, tuple[str, str]] = field(default_factory=dict)

    def undefined(self, library: Library) -> list[str]:
        """The symbols that `library` uses and no library defines."""
        return sorted(library.undefined.difference(*(other.defined for other in self.libraries.values())))

    def named(self, name: str) -> Library | None:
        """The library of that name."""
        return next((one for path, one in self.libraries.items() if name in (path.name, one.soname)), None)


def closure(library: Library, torch_lib: Path | None) -> Closure:
    """The closure of `library`, in a process that has imported the torch whose libraries are in `torch_lib`."""
    result = Closure({library.path: library})
    elsewhere: dict[str, str] = {}
    # Breadth-first like the loader, because a library inherits the RPATH of the first library that needs it. Each
    # library is queued with the folders that it inherits.
    waiting: deque[tuple[Library, list[Path]]] = deque([(library, [])])
    while waiting:
        one, inherited = waiting.popleft()
        folders = one.folders if one.has_runpath else [*one.folders, *inherited]
        handed_on = inherited if one.has_runpath else folders
        for name in one.needed:
            own = [folder / name for folder in folders]
            torchs = [torch_lib / name] if torch_lib else []
            found = next((path for path in [*own, *torchs] if os.path.isfile(path)), None)
            if found is None:
                if result.named(name):
                    continue  # already loaded, from any folder: the loader compares names
                elsewhere.setdefault(name, one.path.name)
                continue
            if found.resolve() not in {path.resolve() for path in result.libraries}:
                try:
                    result.libraries[found] = read(found)
                except (NotALibraryError, OSError) as error:
                    result.missing[name] = one.path.name, f"{found} {error}"
                    continue
                waiting.append((result.libraries[found], handed_on))
    missing, paths = _load(list(elsewhere))
    for path in map(Path, paths):
        if os.path.isfile(path):
            try:
                result.libraries.setdefault(path, read(path))  # includes Python itself, whose functions modules call
            except (NotALibraryError, OSError):
                continue  # such as the loader's cache of names
    result.missing |= {name: (elsewhere[name], error) for name, error in missing.items()}
    return result


def _load(names: list[str]) -> tuple[dict[str, str], list[str]]:
    """The loader's messages about libraries that fail to load, and the files in a process with the others."""
    command = [sys.executable, "-I", "-S", "-c", _LOAD]
    done = subprocess.run(command, input=json.dumps(names), capture_output=True, text=True, errors="surrogateescape")
    result = _report(done.stdout)
    if result is not None:
        missing, paths = result
        return missing, paths
    if len(names) <= 1:
        return dict.fromkeys(names, f"while loading it, {_end(done.returncode)}"), []
    # One of them ends the process. Load them one by one to find out which.
    one_by_one = [_load([name]) for name in names]
    return {name: text for missing, _ in one_by_one for name, text in missing.items()}, [
        path for _, paths in one_by_one for path in paths
    ]


@dataclass(frozen=True)
class Imported:
    """The result of an import in a separate process: the libraries in that process, or the last line of an error."""

    libraries: tuple[str, ...] = ()
    error: str = ""


def try_import(name: str, root: Path, torch_first: bool) -> Imported:
    """Import the module `name` from the folder `root` in a new process, optionally after torch."""
    command = [sys.executable, "-P", "-c", _IMPORT, str(root), name, "torch" if torch_first else ""]
    variables = os.environ | {"PYTHONWARNINGS": "ignore"}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            env=variables,
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return Imported(error=f"the import did not finish within {_PATIENCE} seconds")
    if done.returncode > 0 and done.stderr.strip():
        return Imported(error=done.stderr.strip().rpartition("\n")[2])
    libraries = _report(done.stdout) if done.returncode == 0 else None
    return Imported(error=_end(done.returncode)) if libraries is None else Imported(libraries=tuple(libraries))


def _report(output: str) -> list | None:
    """The report of a child process; None if it ended before the report."""
    lines = [line for line in output.splitlines() if line.startswith(_MARK)]
    return json.loads(lines[-1].removeprefix(_MARK)) if lines else None


def _end(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"the process ended with status {status}"
    try:
        return f"the process was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"the process was ended by signal {-status}"
