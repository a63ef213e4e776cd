"""What the loader would do with a library: which files it takes, which functions are defined, and where it stops."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from interop.doctor.elf import Library, NotALibraryError, read

__all__ = ["Closure", "Imported", "closure", "try_import"]

# Loads the libraries that its arguments name as the loader finds them, and prints what is then in the process, which
# has the libraries of these libraries too.
_LOAD = """
import ctypes, json, sys
missing = {}
for name in sys.argv[1:]:
    try:
        ctypes.CDLL(name)
    except OSError as error:
        missing[name] = str(error)
with open("/proc/self/maps", errors="replace") as maps:
    paths = {line.split(None, 5)[5].rstrip("\\n") for line in maps if "/" in line}
print(json.dumps([missing, sorted(paths)]))
"""

_IMPORT = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
if sys.argv[3]:
    import torch
importlib.import_module(sys.argv[2])
with open("/proc/self/maps", errors="replace") as maps:
    paths = {line.split(None, 5)[5].rstrip("\\n") for line in maps if "/" in line}
print()  # ends what the module may have printed
print(json.dumps(sorted(paths)))
"""


@dataclass
class Closure:
    """A library and all that it is linked to, directly or not.

    Attributes
    ----------
    libraries
        By file. The library itself is the first.
    missing
        The names of those that are not found: who needs it, and what the loader says.
    from_torch
        The names of those that are found only because torch has loaded them before.
    """

    libraries: dict[Path, Library]
    missing: dict[str, tuple[str, str]] = field(default_factory=dict)
    from_torch: set[str] = field(default_factory=set)

    def undefined(self, library: Library) -> list[str]:
        """What `library` uses and nothing defines."""
        others = list(self.libraries.values())
        return sorted(name for name in library.undefined if not any(other.defines(name) for other in others))

    def named(self, name: str) -> Library | None:
        """The library of that name."""
        return next((one for path, one in self.libraries.items() if name in (path.name, one.soname)), None)


def closure(library: Library, torch_lib: Path | None) -> Closure:
    """The closure of `library`, in a process that has imported the torch whose libraries are in `torch_lib`."""
    result = Closure({library.path: library})
    elsewhere: dict[str, str] = {}
    waiting = [library]
    while waiting:
        one = waiting.pop()
        for name in one.needed:
            own = [folder / name for folder in one.folders]
            torchs = [torch_lib / name] if torch_lib else []
            found = next((path for path in [*own, *torchs] if path.is_file()), None)
            if found is None:
                elsewhere.setdefault(name, one.path.name)
                continue
            if found not in own and one is library:
                result.from_torch.add(name)
            if found.resolve() not in {path.resolve() for path in result.libraries}:
                result.libraries[found] = read(found)
                waiting.append(result.libraries[found])
    command = [sys.executable, "-I", "-S", "-c", _LOAD, *elsewhere]
    missing, paths = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    for path in map(Path, paths):
        if path.is_file():
            try:
                result.libraries.setdefault(path, read(path))  # also Python itself, whose functions modules call
            except NotALibraryError:
                continue  # such as the loader's list of names
    result.missing = {name: (elsewhere[name], error) for name, error in missing.items()}
    return result


@dataclass(frozen=True)
class Imported:
    """How an import in a process of its own ended: with the libraries in that process, or with an error's last line."""

    libraries: tuple[str, ...] = ()
    error: str = ""


def try_import(name: str, root: Path, torch_first: bool) -> Imported:
    """Import the module `name` from the folder `root` in a process in which nothing is imported, or torch alone."""
    command = [sys.executable, "-P", "-c", _IMPORT, str(root), name, "torch" if torch_first else ""]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONWARNINGS": "ignore"})
    if done.returncode < 0:
        return Imported(error=f"the process ended by {signal.Signals(-done.returncode).name}")
    if done.returncode:
        return Imported(error=done.stderr.strip().rpartition("\n")[2] or f"exit status {done.returncode}")
    return Imported(libraries=tuple(json.loads(done.stdout.strip().rpartition("\n")[2])))
