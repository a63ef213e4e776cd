"""Chooses, of thousands of generated declarations, those that some sources can need.

All of them cost Cython several seconds in every run, of which a source uses a handful. A declaration whose name stands
nowhere in a source, nor in a file that the source includes or cimports, cannot be meant by it.
"""

import hashlib
import os
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import Cython
from Cython.Build.Dependencies import DependencyTree
from Cython.Compiler.Main import Context
from Cython.Compiler.Options import CompilationOptions, default_options, get_directive_defaults
from Cython.Utils import detect_opened_file_encoding

GENERATED = ("ATen/Functions.pxd", "ATen/core/TensorBody.pxd")
HEADER = "interop/functions.h"
OPERATORS = "#include <ATen/Operators.h>\n#include <ATen/core/List.h>\n#include <interop/tensor_list_ref.h>\n"
"""What all blocks need. A header that is cut down includes what its own do instead."""

_DECLARATION = re.compile(r'^ +\S.*? (\w+)(?: "[^"]+")?(?:\[[\w, ]+\])?\(.*\) except \+translate_exception$')
_PACKAGES = (Path("pxd/ATen/__init__.pxd"), Path("pxd/torch/__init__.pxd"))
_CIMPORT = re.compile(r"^from \S+ cimport (\([^)*]*\)|[^\n(*]*)\n", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Selection:
    """What some sources can need. Each folder goes in front of the one that it is a part of."""

    pxd: Path
    include: Path


class Dependencies(DependencyTree):
    """What Cython will read for a source: like its own tree, but it knows that our declarations need nobody else's."""

    def __init__(self, include_path: Iterable[str], pxd: Path):
        options = CompilationOptions(default_options)
        super().__init__(_Context([".", *include_path], get_directive_defaults(), options=options), quiet=True)
        self._closed = (pxd, Path(Cython.__file__).parent)

    def cimported_files(self, filename):
        return () if self.is_ours(filename) else super().cimported_files(filename)

    def parse_dependencies(self, source_filename):
        _refuse_unknown_encoding(source_filename)
        return super().parse_dependencies(source_filename)

    def is_ours(self, path: str) -> bool:
        """Whether a file is one of our declarations, or of Cython's."""
        return any(map(Path(path).is_relative_to, self._closed))

    def read_by(self, source: str) -> set[str]:
        """The source, and what it includes and cimports, but for what our own declarations cimport."""
        # Absolute, because Cython remembers what it read by name, also from another working directory.
        return self.all_dependencies(os.path.abspath(source))


class _Context(Context):
    """Cython's, which of an included file that is missing says no line."""

    def find_include_file(self, filename, pos=None, source_file_path=None):
        found = self.search_include_directories(
            filename, source_pos=pos, include=True, source_file_path=source_file_path
        )
        if found or source_file_path is None:
            return found
        raise _wrong_line(
            f"there is no file {filename!r} to include, neither beside this one nor in the folders that are searched",
            source_file_path,
            rf"^[ \t]*include[ \t]+(?=['\"]{re.escape(filename)}['\"])",
        )


def _refuse_unknown_encoding(path: str) -> None:
    """Cython says of one neither the file nor the line."""
    with open(path, "rb") as file:
        name = detect_opened_file_encoding(file)
    try:
        "".encode(name)
    except LookupError as error:
        raise _wrong_line(str(error), path, rf"coding[:=]\s*(?={re.escape(name)})") from None


def _wrong_line(message: str, path: str, before: str) -> SyntaxError:
    """An error at what follows the pattern `before`."""
    text = read_source(path)
    found = re.search(before, text, re.MULTILINE)
    line, column = 1, 1
    if found:
        line, column = text.count("\n", 0, found.end()) + 1, found.end() - text.rfind("\n", 0, found.end())
    lines = text.splitlines()
    return SyntaxError(message, (path, line, column, lines[line - 1] if lines else ""))


def select(
    pxd: Path,
    include: Path,
    sources: Iterable[str],
    include_path: Iterable[str],
    folder: Path,
    tree: Dependencies | None = None,
) -> Selection:
    """A copy of the folder `pxd` with only the declarations that `sources` can need, below `folder`; of `include` too.

    The copy's name is a hash of what it holds, so a build that needs the same ones again finds the files unchanged.
    """
    tree = tree or Dependencies([str(pxd), *include_path], pxd)
    names = set()
    for path in {path for source in sources for path in tree.read_by(source)}:
        if not tree.is_ours(path):
            names.update(_NAME.findall(read_source(path)))
    texts = {Path("pxd") / path.relative_to(pxd): path.read_text() for path in sorted(pxd.rglob("*.pxd"))}
    # The build of this package itself has not generated them yet, and needs none.
    for generated in texts.keys() & {Path("pxd") / path for path in GENERATED}:
        texts[generated] = "".join(_needed(texts[generated], names))
    for package in _PACKAGES:
        texts[package] = _without_unused(texts[package], names)
    if (include / HEADER).exists():
        texts[Path("include") / HEADER] = cut((include / HEADER).read_text(), names)
    digest = hashlib.sha256(repr(texts).encode()).hexdigest()[:16]
    chosen = folder / digest
    for path, text in texts.items():
        if not (chosen / path).exists():
            write_whole(chosen / path, text)
    return Selection(chosen / "pxd", chosen / "include")


def _needed(text: str, names: set[str]) -> Iterator[str]:
    for line in text.splitlines(keepends=True):
        declaration = _DECLARATION.match(line)
        if not declaration or declaration[1] in names:
            yield line


def _without_unused(text: str, names: set[str]) -> str:
    """A package's declarations without the cimports of what has none of `names`: each brings headers into the module.

    A cimport with a star stays.
    """
    used = names | set(_NAME.findall(_CIMPORT.sub("", text)))
    return _CIMPORT.sub(lambda cimport: cimport[0] if used & set(_NAME.findall(cimport[1])) else "", text)


def names_of_aten(pxd: Path) -> set[str]:
    """The names of ATen that a selection leaves out where nothing needs them."""
    listed = _CIMPORT.findall((pxd / "ATen" / "__init__.pxd").read_text())
    functions = pxd / GENERATED[0]
    declared = map(_DECLARATION.match, functions.read_text().splitlines() if functions.exists() else ())
    return {name for names in listed for name in _NAME.findall(names)} | {found[1] for found in declared if found}


def read_source(path: str) -> str:
    """The text of a source, in the encoding that its first lines name. What is wrong with that, Cython will say."""
    try:
        with tokenize.open(path) as file:
            return file.read()
    except (SyntaxError, UnicodeDecodeError):
        return Path(path).read_text(encoding="utf-8", errors="replace")


def write_whole(path: Path, text: str) -> None:
    """Another process that builds the same never sees half of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(text)
    partial.replace(path)


def cut(text: str, names: set[str]) -> str:
    """The header `text` with the blocks of `names` alone, and of ATen's headers those that these need."""
    prelude, *found = text.split("\n// [")
    kept = [block for block in found if block.partition("]")[0] in names]
    headers = sorted({header for block in kept for header in block.partition("]")[2].partition("\n")[0].split()})
    includes = "".join(f"#include <{header}>\n" for header in headers)
    return "\n// [".join([prelude.replace(OPERATORS, includes), *kept])
