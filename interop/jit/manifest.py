"""What a build has read: whether it would still be the same is seen in that, without building."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from interop.jit.recipe import digest_of_file

__all__ = ["Manifest", "read", "write"]

NAME = "manifest.json"
CHANGED = "changed while it was built"


@dataclass(frozen=True)
class Manifest:
    """The record of a finished build; a folder without one is no build.

    Attributes
    ----------
    module
        The file to import, in the folder of the build.
    files
        Hashes of all files that were read, by path.
    absent
        Files that were looked for in vain.
    """

    module: str
    files: dict[str, str]
    absent: list[str]

    def holds(self) -> bool:
        """Whether a build now would read the same."""
        return not any(map(os.path.exists, self.absent)) and all(
            digest_of_file(path) == digest for path, digest in self.files.items()
        )


def read(folder: Path) -> Manifest | None:
    """The manifest of the build in `folder`; None if there is none, or none that is whole."""
    try:
        return Manifest(**json.loads((folder / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def write(folder: Path, module: str, files: Iterable[str], absent: Sequence[str], started: float) -> None:
    """Make what lies in `folder` a finished build, of `files`, that was begun at the time `started`."""
    hashes = {}
    for path in sorted(files):
        # Of what was written meanwhile nobody knows which state went into the module.
        changed = not os.path.exists(path) or os.stat(path).st_mtime > started
        hashes[path] = CHANGED if changed else digest_of_file(path)
    text = json.dumps({"module": module, "files": hashes, "absent": list(absent)})
    partial = folder / f"{NAME}.partial"
    partial.write_text(text, encoding="utf-8")
    partial.replace(folder / NAME)
