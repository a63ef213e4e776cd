"""What a build has read: whether it would still be the same is seen in that, without building."""

import dataclasses
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from interop.jit import surroundings
from interop.jit.recipe import digest_of_file, states_of
from interop.jit.shadows import located

__all__ = ["Manifest", "read", "write"]

NAME = "manifest.json"
CHANGED = "changed while it was built"
_LINKED = re.compile(r"\.(?:a|o|so)(?:\.\d+)*$")
"""Files for the linker, which may be large: their size and date must do."""


@dataclass(frozen=True)
class Manifest:
    """The record of a finished build; a folder without one is no build.

    Attributes
    ----------
    module
        The file to import, in the folder of the build.
    files
        Hashes of all files that were read, by path; of libraries and objects, their states.
    absent
        Files that were looked for in vain.
    located
        The entries of `sys.path` in which declarations were found that lie nowhere else, by their names there.
    sizes
        Those of the libraries and objects that were made, by name. Others than we may have removed some of them.
    around
        What the build has found of `interop.jit.surroundings`, as far as it depends on them.
    """

    module: str
    files: dict[str, str | None]
    absent: list[str]
    located: dict[str, str | None]
    sizes: dict[str, int]
    around: dict[str, object]

    def holds(self, folder: Path) -> bool:
        """Whether what was built is all there in `folder`, and a build now would read the same."""
        return (
            self.sizes == _sizes(folder)
            and not any(map(os.path.exists, self.absent))
            and self.located == located(self.located)
            and self.around == surroundings.current(self.around)
            and all(_state(path) == state for path, state in self.files.items())
        )


def read(folder: Path) -> Manifest | None:
    """The manifest of the build in `folder`; None if there is none, or none that is whole."""
    try:
        return Manifest(**json.loads((folder / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def write(
    folder: Path,
    module: str,
    files: Iterable[str],
    started: float,
    *,
    absent: Sequence[str] = (),
    on_path: Iterable[str] = (),
    around: Iterable[str] = (),
) -> None:
    """Make what lies in `folder` a finished build, of `files`, that was begun at the time `started`."""
    states = {}
    for path in sorted(files):
        # Of what was written meanwhile nobody knows which state went into the module.
        states[path] = CHANGED if _changed_since(path, started) else _state(path)
    made = Manifest(module, states, list(absent), located(on_path), _sizes(folder), surroundings.current(around))
    partial = folder / f"{NAME}.partial"
    partial.write_text(json.dumps(dataclasses.asdict(made)), encoding="utf-8")
    partial.replace(folder / NAME)


def _state(path: str) -> str | None:
    if not _LINKED.search(path):
        return digest_of_file(path)
    try:
        return json.dumps(states_of([path]))
    except OSError:
        return None


def _changed_since(path: str, time: float) -> bool:
    """Also if it was replaced by a file with an older date.

    The date that anybody can set says nothing: it may lie in the future, and the file would be new at each load.
    """
    try:
        return os.stat(path).st_ctime > time
    except OSError:
        return True


def _sizes(folder: Path) -> dict[str, int]:
    try:
        return {path.name: path.stat().st_size for path in folder.iterdir() if path.suffix in (".so", ".o")}
    except OSError:
        return {}  # somebody removes it just now
