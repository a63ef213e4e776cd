"""Chooses, of thousands of generated declarations, those that some sources can need.

All of them cost Cython several seconds in every run, of which a source uses a handful. A declaration whose name stands
nowhere in a source, nor in a file that the source includes or cimports, cannot be meant by it.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from Cython.Build.Dependencies import DependencyTree
from Cython.Compiler.Main import Context
from Cython.Compiler.Options import CompilationOptions, default_options, get_directive_defaults

GENERATED = ("ATen/Functions.pxd", "ATen/core/TensorBody.pxd")
_DECLARATION = re.compile(r'^ +\S.*? (\w+)(?: "[\w:]+")?\(.*\) except \+translate_exception$')
_NAME = re.compile(r"[A-Za-z_]\w*")


def select(pxd: Path, sources: Iterable[str], include_path: Iterable[str], folder: Path) -> Path:
    """A copy of the folder `pxd` with only the declarations that `sources` can need, below `folder`.

    Its name is a hash of what it holds, so a build that needs the same ones again finds the files unchanged.
    """
    names = set()
    for path in _read_by(sources, [str(pxd), *include_path]):
        if not Path(path).is_relative_to(pxd):
            names.update(_NAME.findall(Path(path).read_text(encoding="utf-8", errors="replace")))
    texts = {path.relative_to(pxd): path.read_text() for path in sorted(pxd.rglob("*.pxd"))}
    # The build of this package itself has not generated them yet, and needs none.
    for generated in texts.keys() & set(map(Path, GENERATED)):
        texts[generated] = "".join(_needed(texts[generated], names))
    digest = hashlib.sha256(repr(texts).encode()).hexdigest()[:16]
    chosen = folder / digest
    for path, text in texts.items():
        if not (chosen / path).exists():
            write_whole(chosen / path, text)
    return chosen


def _read_by(sources: Iterable[str], include_path: list[str]) -> set[str]:
    """The sources, and all files that Cython will read for them."""
    context = Context([".", *include_path], get_directive_defaults(), options=CompilationOptions(default_options))
    tree = DependencyTree(context, quiet=True)
    # Absolute, because Cython remembers what it read by name, also from another working directory.
    return {path for source in sources for path in tree.all_dependencies(os.path.abspath(source))}


def _needed(text: str, names: set[str]) -> Iterator[str]:
    for line in text.splitlines(keepends=True):
        declaration = _DECLARATION.match(line)
        if not declaration or declaration[1] in names:
            yield line


def write_whole(path: Path, text: str) -> None:
    """Another process that builds the same never sees half of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(text)
    partial.replace(path)
