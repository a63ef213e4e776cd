"""Files that are not there and would change what a build reads: they would be found before those that it has read."""

import functools
import os
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import torch

from interop.jit.cache import root
from interop.paths import get_include, get_pxd_dir

__all__ = ["is_fixed", "located", "of_libraries", "on_path", "shadowing"]


def is_fixed(path: str) -> bool:
    """Whether a file changes only with what is in the key already: torch, Python, the system, and our own."""
    return os.path.abspath(path).startswith(_fixed(str(root())))


def shadowing(files: Collection[str], folders: Iterable[str]) -> list[str]:
    """Paths which do not exist, and at which a file or folder would be read in place of one of `files`.

    `folders` are those that were searched; what stands beside the files themselves may be found first. It may be more
    than would be: a build in vain costs seconds. Of a folder that is not there, nothing below it is listed.
    """
    files = [os.path.abspath(path) for path in files]
    searched = list(dict.fromkeys(map(os.path.abspath, folders)))
    beside = map(os.path.dirname, files)
    ours = [one for one in dict.fromkeys([*searched, *beside]) if not is_fixed(os.path.join(one, "file"))]
    bases = [*(os.path.join(folder, "") for folder in searched), *_fixed(str(root()))]
    names = {
        other for path in files for base in bases if path.startswith(base) for other in _forms(path.removeprefix(base))
    }
    return sorted({absent for folder in ours for name in names if (absent := _first_absent(folder, name))})


def on_path(files: Iterable[str], searched: Iterable[str]) -> list[str]:
    """The names of those .pxd among `files` that Cython has found through `sys.path`, and in none of `searched`."""
    before = tuple(os.path.join(os.path.abspath(folder), "") for folder in searched)
    paths = [path for path in map(os.path.abspath, files) if not is_fixed(path) and not path.startswith(before)]
    bases = {os.path.join(os.path.abspath(entry), "") for entry in sys.path}
    return sorted({path.removeprefix(base) for path in paths for base in bases if path.startswith(base)})


def located(names: Iterable[str]) -> dict[str, str | None]:
    """The first entries of `sys.path` in which there is a .pxd of one of these names, in any of its forms."""
    return {
        name: next(
            (
                entry
                for entry in map(os.path.abspath, sys.path)
                if any(os.path.isfile(os.path.join(entry, form)) for form in _forms(name))
            ),
            None,
        )
        for name in names
    }


def of_libraries(names: Iterable[str], folders: Iterable[str], flags: Iterable[str]) -> list[str]:
    """The same for the libraries with which a module is linked: those named, and those in the linker's flags."""
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


def _forms(name: str) -> Iterator[str]:
    """The names under which Cython looks for a .pxd: of a module, of a package, and with dots."""
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


@functools.cache
def _fixed(cache: str) -> tuple[str, ...]:
    """The folders of what changes only with the key, with a slash at the end."""
    import Cython

    cython, torch_headers = Path(Cython.__file__).parent, Path(torch.__file__).parent / "include"
    folders: list[str | Path] = [
        *(torch_headers / "torch" / "csrc" / "api" / "include", torch_headers, torch_headers.parent),
        *(cython / "Includes", cython, sysconfig.get_path("include"), cache, get_include(), get_pxd_dir()),
        *("/usr/include", "/usr/lib", "/lib", "/lib64"),
    ]
    return tuple(os.path.join(folder, "") for folder in folders)
