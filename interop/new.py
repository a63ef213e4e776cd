"""``python -m interop new NAME``: write a small, complete project that is ready to build, test and install."""

import argparse
import importlib.metadata
import keyword
import re
import shutil
import sys
import sysconfig
from importlib.machinery import PathFinder
from pathlib import Path

from interop.cli import USAGE, CommandError, Parser
from interop.stable_abi import stable_abi
from interop.toolchain import MINIMUM_STABLE, find_torch

__all__ = ["main", "write_project"]

TEMPLATES = Path(__file__).resolve().parent / "templates"

MAX_NAME = 200
"""Keeps every file name within the 255 bytes that file systems accept."""

PLACEHOLDER = "your_project"
"""Placeholder for the project's name in the texts and paths of the templates. It keeps the templates valid files."""

TORCH = "your_torch"
"""Placeholder for the project's requirement for torch: see `interop.abi.names.torch_requirement`."""

BUILD_FILE = "your_build_file"
"""Placeholder for the file that names the releases that a project for many of them supports."""

STABLE, LIMITED_API, PYTHON = "your_stable", "your_limited_api", "your_python"
"""Placeholders for the arguments of a stable module, and for the oldest CPython that it runs with."""

REQUIRES_PYTHON = '">=3.11"'
"""Placeholder for that CPython in pyproject.toml, which would be invalid with another placeholder."""

VECTORCALL = (3, 12)
"""The first CPython whose Limited API has vectorcall. Calls to a module for an older one cost more."""

FREE_THREADED = "# cython: freethreading_compatible=True\n"
"""The line for a Cython source whose module needs no GIL."""

RENAMED = {"gitignore": ".gitignore"}
"""Files whose real names would take effect in the folder of the templates."""

_CYTHONS = "cdef cpdef cimport ctypedef include nogil libc libcpp cpython openmp ATen c10"
_PACKAGES = (
    "torch torch_interop interop numpy Cython cython setuptools pip wheel build ninja cmake scikit_build_core skbuild "
    "python pytest py hypothesis torchgen functorch caffe2 torchvision torchaudio triton"
)
_FOLDERS = "src dist tests test conftest setup docs"
_NAMESPACES = "aten at prim prims quantized c10d onnx higher_order load_library import_module loaded_libraries"

TAKEN = {
    **dict.fromkeys(_NAMESPACES.split(), "a name in torch.ops, where a project with operators adds its own name"),
    **dict.fromkeys(
        sys.stdlib_module_names, "the name of a module of the standard library, and one would hide the other"
    ),
    **dict.fromkeys(_CYTHONS.split(), "a keyword of Cython, or the name of declarations that the project would hide"),
    **dict.fromkeys(_FOLDERS.split(), "a name that tools look for in a project"),
    **dict.fromkeys(_PACKAGES.split(), "the name of a package that exists, perhaps one that the project needs"),
    **dict.fromkeys(keyword.kwlist, "a keyword of Python"),
}
"""Names that break a project, and why. pip ignores case, and treats dashes, underscores and dots alike."""


def main(arguments: list[str]) -> None:
    """Run ``python -m interop new`` with `arguments`."""
    parser = Parser(
        prog="python -m interop new",
        description="Write a project with a Cython module that uses torch's tensors into a new folder NAME.",
        examples={
            "python -m interop new cells": "a module, its test, and a setup.py of a few lines",
            "python -m interop new kernels --cuda": "an operator for torch.ops, with a CUDA kernel",
            "python -m interop new ops --stable 2.11": "one wheel for torch 2.11 and all later ones",
        },
    )
    parser.add_argument("name", metavar="NAME", help="the name of the package")
    parser.add_argument("--cuda", action="store_true", help="add a CUDA kernel, behind an operator for torch.ops")
    parser.add_argument(
        "--cmake", action="store_true", help="build with CMake and scikit-build-core instead of setuptools"
    )
    parser.add_argument(
        "--stable",
        metavar="TORCH",
        nargs="?",
        type=_release,
        const=".".join(map(str, MINIMUM_STABLE)),
        help="compile once for this release of torch (%(const)s if not given) and later ones, and many CPythons",
    )
    parser.add_argument(
        "--free-threaded", action="store_true", help="declare that the modules need no GIL, for a free-threaded Python"
    )
    options = parser.parse_args(arguments)
    if options.cuda and options.cmake:
        parser.error("the project with a CUDA kernel is built by setuptools: leave out --cuda or --cmake")
    if options.stable and options.cuda:
        parser.error("the project for many releases of torch has no CUDA: leave out --stable or --cuda")
    files = write_project(options.name, Path(), options.cuda, options.cmake, options.free_threaded, options.stable)
    print("\n".join(map(str, files)))
    steps = [f"cd {options.name}", 'pip install --no-build-isolation ".[test]"', "python -m pytest"]
    if options.cmake:  # these may be missing, unlike the requirements of setuptools
        steps.insert(0, 'pip install "scikit-build-core>=0.10" cmake ninja')
    print("\n  ".join(["\nNext:", *steps]))


def write_project(
    name: str,
    parent: Path,
    cuda: bool = False,
    cmake: bool = False,
    free_threaded: bool = False,
    stable: str | None = None,
) -> list[Path]:
    """Write a project into the new folder `name` in `parent`, and return its files, relative to `parent`.

    With `cuda` it has a CUDA kernel, with `cmake` CMake builds it, with `free_threaded` its modules declare that they
    need no GIL, and with `stable` it is for that release of torch and later ones. The function raises `CommandError`
    if the name or the release is not accepted, the folder exists, or it cannot be written.
    """
    _check_name(name)
    values = {PLACEHOLDER: name, BUILD_FILE: "CMakeLists.txt" if cmake else "setup.py", **_versions(stable)}
    folder = parent / name
    if folder.exists() or folder.is_symlink():
        raise CommandError(f"{str(folder)!r} exists already: choose another name, or run this in another folder")
    # Later layers replace files of earlier ones.
    backend = "cmake" if cmake else "setuptools"
    layers = ["project", backend, *(["cuda"] if cuda else []), *(["stable", f"stable_{backend}"] if stable else [])]
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
            for placeholder, value in values.items():
                text = text.replace(placeholder, value)
            if free_threaded and relative.suffix == ".pyx":
                text = FREE_THREADED + text
            target.write_text(text, encoding="utf-8")
            written.append(target.relative_to(parent))
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)  # leave no partial project
        raise CommandError(f"cannot write {folder}: {error.strerror}") from error
    return written


def _versions(stable: str | None) -> dict[str, str]:
    """The values of the placeholders for releases."""
    if stable is None:
        torch = find_torch()
        return {TORCH: torch.requirement if torch else "torch"}
    oldest = min(VECTORCALL, sys.version_info[:2])
    limited_api = f"cp{oldest[0]}{oldest[1]}"
    try:
        stable_abi(stable)
    except ValueError as error:
        raise CommandError(f"--stable: {error}", USAGE) from error
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        message = "--stable: a free-threaded CPython, like this one, has no Limited API; leave --stable out"
        raise CommandError(message, USAGE)
    return {
        TORCH: f"torch>={stable}",
        STABLE: stable,
        LIMITED_API: limited_api,
        PYTHON: f"{oldest[0]}.{oldest[1]}",
        REQUIRES_PYTHON: f'">={oldest[0]}.{oldest[1]}"',
    }


def _release(text: str) -> str:
    """What follows --stable, which may be the NAME by mistake."""
    if text.isidentifier():
        raise argparse.ArgumentTypeError(
            f"expected a release of torch, got {text!r}; write NAME first: {text} --stable"
        )
    return text


def _check_name(name: str) -> None:
    if not (name.isidentifier() and name.isascii()):
        proposed = re.sub(r"\W+", "_", name, flags=re.ASCII).lstrip("_0123456789").rstrip("_")
        instead = f", such as {proposed!r}" if proposed.isidentifier() and not _conflict(proposed) else ""
        raise CommandError(f"NAME must be an identifier of Python, in ASCII{instead}; got {name!r}", USAGE)
    if len(name) > MAX_NAME:
        raise CommandError(
            f"NAME must have at most {MAX_NAME} characters, because it names files, and has {len(name)}; choose "
            "a shorter one",
            USAGE,
        )
    reason = _conflict(name)
    if reason:
        proposed = name.strip("_") if name.strip("_") != name else f"my_{name}"
        instead = f", such as {proposed!r}" if proposed.isidentifier() and not _conflict(proposed) else ""
        raise CommandError(f"NAME must be a usable name, but {name!r} is {reason}; choose another{instead}", USAGE)


def _conflict(name: str) -> str | None:
    """Why a project must not have this name; None if it may."""
    if name.strip("_") != name:
        return "a name that pip does not accept, because it ends in an underscore"
    if name in TAKEN:
        return TAKEN[name]
    # pip treats these as the same project, and would replace one with the other.
    packages = {_normal(package) for package in _PACKAGES.split()}
    return TAKEN["torch"] if _normal(name) in packages else _installed(name)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _installed(name: str) -> str | None:
    """A description of the installed package of this name; None if there is none."""
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        spec = PathFinder.find_spec(name)
        return f"an installed module, {spec.origin}" if spec is not None and spec.origin else None
    if found.read_text("direct_url.json") is not None:
        return None  # installed from a folder: perhaps the same project, started again
    return f"an installed package, version {found.version}, which pip would replace"
