"""Reduce the generated declarations to those that a source can need.

Reading all of them costs Cython several seconds in every run, and a source uses a handful. A source can use only
declarations whose names are in it or in a file that it includes or cimports.
"""

import contextlib
import functools
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from interop.cython.dependencies import read_source

__all__ = ["OPERATORS", "Selection", "cut", "select", "write_whole"]

GENERATED = ("interop/functions.pxd", "ATen/core/TensorBody.pxd")
SCALAR = "c10/core/Scalar.pxd"
"""Also reduced for a stable module: if it declares a complex number, Cython includes <complex>."""
HAND_ON = ("ATen/__init__.pxd", "ATen/Functions.pxd", "interop/__init__.pxd", "torch/__init__.pxd", "torch/stable.pxd")
"""Files that cimport names from further files for their users."""
OF_ONE_RELEASE = (
    *("ATen/Context", "ATen/OpMathType", "ATen/TensorIndexing", "ATen/TensorIterator", "ATen/cuda", "ATen/dlpack"),
    *("c10/core/CachingDeviceAllocator", "c10/core/Event", "c10/core/GradMode", "c10/core/Storage"),
    *("c10/core/StreamGuard", "c10/core/SymBool", "c10/core/SymFloat", "c10/core/SymInt", "c10/core/SymIntArrayRef"),
    "c10/cuda",
    *("interop/accessor", "interop/bridges", "interop/caching_allocator", "interop/context", "interop/cuda"),
    *("interop/dlpack", "interop/elementwise", "interop/generator", "interop/indexing", "interop/instruction_sets"),
    *("interop/manual", "interop/reduction", "interop/symint", "interop/tensor_iterator", "interop/vector_math"),
    *("interop/warnings",),
    *("torch/_types", "torch/autograd", "torch/csrc"),
)
"""Declaration modules and packages that stable modules lack, because their headers use torch's C++."""
HEADER = "interop/functions.h"
OPERATORS = "#include <ATen/Operators.h>\n#include <ATen/core/List.h>\n#include <interop/tensor_list_ref.h>\n"
STABLE_OPERATORS = "#include <interop/stable/arithmetic.h>\n#include <interop/stable/python_call.h>\n"
"""The includes of the whole `HEADER`. A reduced header includes only what its own blocks need."""
ENUMERATORS = "interop/stable/enumerators.h"
"""A header that includes torch's, in blocks headed by the names that need them, in the format of `HEADER`."""

_DECLARATION = re.compile(r'^ +\S.*? (\w+)(?: "[^"]+")?(?:\[[\w, ]+\])?\(.*\) except \+translate_exception$')
_CIMPORT = re.compile(r"^(from \S+ cimport) (\([^)*]*\)|[^\n(*]*)\n", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_]\w*")
_NO_CODE = re.compile(r'#.*|"[^"\n]*"')


@dataclass(frozen=True)
class Selection:
    """The reduced declarations and headers that a source can need."""

    pxd: Path  # a folder to search before the complete declarations
    include: Path  # a folder to search before the complete headers
    digest: str  # of all declarations and headers that the source can need, reduced or not


def select(
    read: Iterable[str], pxd: Path, include: Path, folder: Path, stable: tuple[Path, Path] | None = None
) -> Selection:
    """Write below `folder` the part of `pxd` and `include` that a source with the files `read` can need.

    The result is in a folder named by a hash of its content, so the next build with the same needs finds the files
    unchanged. `stable` has the folders of declarations and headers that override those of the same names. For a stable
    module, the result has all declarations, because Cython first searches the folder of the .pxd that it is reading.
    """
    names = {name for path in read for name in _NAME.findall(read_source(path))}
    whole = _texts(pxd)
    chosen = {path: whole[path] for path in whole if path.name == "__init__.pxd"}  # so that each folder is a package
    if stable:
        instead = _texts(stable[0])
        whole = {path: text for path, text in whole.items() if not _of_one_release(path)} | instead
        chosen = dict(whole)
        include = stable[1]
    for name in (*GENERATED, *([SCALAR] if stable else [])):
        # The build of this package needs none of these files, and has not generated them yet.
        if (path := Path("pxd", name)) in whole:
            chosen[path] = "".join(_needed(whole[path], names))
    for name in HAND_ON:
        if (path := Path("pxd", name)) in whole:
            chosen[path] = _without_unused(whole[path], names, whole)
    if (include / HEADER).exists():
        chosen[Path("include", HEADER)] = cut((include / HEADER).read_text(), names)
    if stable:
        prelude, *found = (include / ENUMERATORS).read_text().split("\n// [")
        kept = [block for block in found if not names.isdisjoint(block.partition("]")[0].split())]
        chosen[Path("include", ENUMERATORS)] = "\n// [".join([prelude, *kept]) + ("" if kept else "\n")
    digest = hashlib.sha256(repr(whole | chosen).encode()).hexdigest()[:16]
    for path, text in chosen.items():
        write_whole(folder / digest / path, text)
    return Selection(folder / digest / "pxd", folder / digest / "include", digest)


def _texts(pxd: Path) -> dict[Path, str]:
    """The texts of the declarations below a folder, by path."""
    return {Path("pxd", path.relative_to(pxd)): path.read_text() for path in sorted(pxd.rglob("*.pxd"))}


def cut(text: str, names: set[str]) -> str:
    """Reduce the header `text` to the blocks of `names`, and its includes to the ATen headers that these need."""
    prelude, *found = text.split("\n// [")
    kept = [block for block in found if block.partition("]")[0] in names]
    headers = sorted({header for block in kept for header in block.partition("]")[2].partition("\n")[0].split()})
    includes = "".join(f"#include <{header}>\n" for header in headers)
    return "\n// [".join([prelude.replace(OPERATORS, includes).replace(STABLE_OPERATORS, includes), *kept])


def _needed(text: str, names: set[str]) -> Iterator[str]:
    for line in text.splitlines(keepends=True):
        declaration = _DECLARATION.match(line)
        if not declaration or declaration[1] in names:
            yield line


def _of_one_release(path: Path) -> bool:
    """Whether `path`, below a folder pxd, is in `OF_ONE_RELEASE` or in one of its packages."""
    module = path.relative_to("pxd").with_suffix("")
    return any(module.is_relative_to(one) for one in OF_ONE_RELEASE)


def _without_unused(text: str, names: set[str], whole: Mapping[Path, str]) -> str:
    """Reduce the cimports in `text` to `names`, because each cimport brings headers into the module.

    A name that its module in `whole` does not have is dropped too. A cimport with a star stays, and so do names that
    `text` itself uses.
    """

    def shortened(cimport: re.Match[str]) -> str:
        file = Path("pxd", *cimport[1].split()[1].split("."))
        if _of_one_release(file) and file.with_suffix(".pxd") not in whole:
            return ""
        there = whole.get(file.with_suffix(".pxd"))
        kept = [
            one.strip()
            for one in cimport[2].strip("()").split(",")
            if any(there is None or name in _names(there) for name in used.intersection(_NAME.findall(one)))
        ]
        return f"{cimport[1]} {', '.join(kept)}\n" if kept else ""

    used = names | _names(_CIMPORT.sub("", text))
    return _CIMPORT.sub(shortened, text)


@functools.lru_cache(maxsize=128)
def _names(pxd: str) -> set[str]:
    """The names in the text of a .pxd, without those in comments and strings."""
    return set(_NAME.findall(_NO_CODE.sub("", pxd)))


def write_whole(path: Path, text: str) -> None:
    """Write a file unless it has this text already. A concurrent build never sees half of it."""
    with contextlib.suppress(OSError, ValueError):
        if path.read_text() == text:
            return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(text)
    partial.replace(path)
