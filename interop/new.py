"""``python -m interop new NAME``: write a small, complete project that builds, tests and installs as it is."""

import keyword
import re
import shutil
import sys
from pathlib import Path

from interop.cli import USAGE, CommandError, Parser

__all__ = ["main", "write_project"]

TEMPLATES = Path(__file__).resolve().parent / "templates"

PLACEHOLDER = "your_project"
"""Stands for the project's name in the templates, in texts and in paths, so that they are valid files themselves."""

RENAMED = {"gitignore": ".gitignore"}
"""Files that would mean something under their own name where the templates lie."""

TAKEN = sys.stdlib_module_names | {"ATen", "Cython", "c10", "cython", "interop", "numpy", "setuptools", "torch"}
"""Names of modules that a project of the same name would hide, or that would hide it."""


def main(arguments: list[str]) -> None:
    """Run ``python -m interop new`` with `arguments`."""
    parser = Parser(
        prog="python -m interop new",
        description="Write a project with a Cython module that uses torch's tensors, into a new folder NAME.",
    )
    parser.add_argument("name", metavar="NAME", help="the name of the package")
    parser.add_argument("--cuda", action="store_true", help="with a CUDA kernel, behind an operator for torch.ops")
    parser.add_argument("--cmake", action="store_true", help="built by CMake with scikit-build-core, not by setuptools")
    options = parser.parse_args(arguments)
    if options.cuda and options.cmake:
        parser.error("the project with a CUDA kernel is built by setuptools: leave out --cuda or --cmake")
    files = write_project(options.name, Path(), options.cuda, options.cmake)
    print("\n".join(map(str, files)))
    print(f"\nNext:\n  cd {options.name}\n  pip install --no-build-isolation .\n  python -m pytest")


def write_project(name: str, parent: Path, cuda: bool = False, cmake: bool = False) -> list[Path]:
    """Write a project into the new folder `name` in `parent`, and return its files, relative to `parent`.

    Parameters
    ----------
    name
        An ASCII identifier; the name of the package, too.
    parent
        An existing folder.
    cuda
        Whether it has a CUDA kernel.
    cmake
        Whether it is built by CMake.

    Raises
    ------
    CommandError
        If the name will not do, there is such a folder already, or it cannot be written.
    """
    _check_name(name)
    folder = parent / name
    if folder.exists() or folder.is_symlink():
        raise CommandError(f"there is a {str(folder)!r} already: choose another name, or another folder to run this in")
    # The later ones replace files of the earlier ones.
    layers = ["project", "cmake" if cmake else "setuptools", *(["cuda"] if cuda else [])]
    texts = {
        path.relative_to(TEMPLATES / layer): path.read_text(encoding="utf-8")
        for layer in layers
        for path in sorted((TEMPLATES / layer).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    written = []
    try:
        for relative, text in sorted(texts.items()):
            target = folder / RENAMED.get(str(relative), str(relative).replace(PLACEHOLDER, name))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text.replace(PLACEHOLDER, name), encoding="utf-8")
            written.append(target.relative_to(parent))
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)  # no half of a project
        raise CommandError(f"cannot write {folder}: {error.strerror}") from error
    return written


def _check_name(name: str) -> None:
    if not (name.isidentifier() and name.isascii()):
        proposed = re.sub(r"\W+", "_", name, flags=re.ASCII).lstrip("_0123456789").rstrip("_")
        instead = f", such as {proposed!r}" if proposed.isidentifier() and not _refused(proposed) else ""
        raise CommandError(f"NAME must be an identifier of Python, in ASCII{instead}; got {name!r}", USAGE)
    if _refused(name):
        kind = "a word of Python" if keyword.iskeyword(name) else "the name of a module that it would hide"
        raise CommandError(f"NAME must be a name of its own, and {name!r} is {kind}; take another", USAGE)


def _refused(name: str) -> bool:
    return keyword.iskeyword(name) or name in TAKEN
