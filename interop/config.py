# PYTHON_ARGCOMPLETE_OK
"""``interop-config``, or ``python -m interop config``: compiler and linker flags for other build systems.

It imports only this file and the code that finds torch and the compiler, so it is quick.
"""

import json
import shlex
import sys
import sysconfig
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from interop.cli import USAGE, CommandError, Parser, run
from interop.paths import (
    STABLE_LIBRARY,
    get_cmake_dir,
    get_include,
    get_pxd_dir,
    get_source_dir,
    get_stable_dir,
    get_stable_library,
)
from interop.stable_abi import VISIBILITY, StableABI, export_flag, stable_abi
from interop.toolchain import CXX_FLAGS, Torch, find_torch, openmp_flags

__all__ = ["config", "installed", "main", "script"]

LIBRARIES = ("c10", "torch", "torch_cpu", "torch_python")
"""Torch's libraries that modules are linked to, as in `torch.utils.cpp_extension`."""

_OPTIONS = {
    "pxd": "the folder of the declarations, for cython -I",
    "include": "the folder of our C++ headers",
    "cflags": "the compiler's flags: folders of headers, C++20, OpenMP",
    "ldflags": "the linker's flags: the folder of libraries, and the flag that hides the symbols of a stable module",
    "libs": "the libraries",
    "cmake": "the folder of the CMake package, for cmake -Dinterop_DIR=...",
    "suffix": "the suffix of the file names of modules",
    "version": "the version of torch-interop",
    "json": "all of this and more, as JSON",
}


def main(arguments: list[str], prog: str = "python -m interop config") -> None:
    """Run ``python -m interop config`` with `arguments`."""
    parser = Parser(
        prog=prog,
        description="Print compiler and linker flags for other build systems.",
        examples={
            f"{prog} --json": "everything, as JSON",
            f"cython --cplus -I $({prog} --pxd) m.pyx -o m.cpp": "translate, without the checks of `cythonize`",
            f"c++ -O2 -shared -fPIC $({prog} --cflags) m.cpp $({prog} --ldflags --libs) -o m.so": (
                "compile and link; a program imports torch before m"
            ),
        },
    )
    for name, text in _OPTIONS.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    parser.add_argument(
        "--stable", metavar="TORCH", help="flags for modules that run with this release of torch and later ones"
    )
    parser.add_argument(
        "--py-limited-api",
        metavar="TAG",
        help="flags for modules that also run with this CPython and later ones, such as cp312",
    )
    options = vars(parser.parse_args(arguments))
    chosen = [name for name in _OPTIONS if options[name]]
    if not chosen:
        parser.error(f"an option is missing; the options are: {', '.join(f'--{name}' for name in _OPTIONS)}")
    try:
        abi = stable_abi(options["stable"], options["py_limited_api"])
    except ValueError as error:
        raise CommandError(str(error), USAGE) from error
    values = config(abi)
    if "json" in chosen:
        print(json.dumps(values, indent=1))
        return
    flags = {
        "cflags": [*(f"-I{folder}" for folder in values["include_dirs"]), *values["cflags"]],
        "ldflags": [*(f"-L{folder}" for folder in values["library_dirs"]), *values["ldflags"]],
        "libs": [f"-l{library}" for library in values["libraries"]],
    }
    words = [shlex.join(flags[name]) if name in flags else str(values[name]) for name in chosen]
    print(" ".join(words))


def script() -> int:
    """Run ``interop-config`` with the arguments of this process, and return the exit status."""
    return run(_script)


def _script() -> int:
    try:
        main(sys.argv[1:], "interop-config")
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.status
    return 0


def config(abi: StableABI | None = None) -> dict[str, Any]:
    """The flags that modules are compiled and linked with, for this torch or with a stable ABI.

    Returns
    -------
    dict
        ``pxd``, ``include``, ``cmake`` and ``bootstrap`` are paths. ``include_dirs``, ``cflags``, ``library_dirs``,
        ``ldflags`` and ``libraries`` are lists for the compiler and the linker. ``version`` is the version of this
        package, ``torch`` that of torch, and ``abi`` the name of torch's binary interface. ``suffix`` is the suffix of
        the file names of modules.

    Raises
    ------
    CommandError
        If torch is not installed, or this package was not built, or was built for another torch.
    """
    version, torch = installed()
    try:
        pxd, include, cmake, source = get_pxd_dir(), get_include(), get_cmake_dir(), get_source_dir()
        stable = Path(get_stable_library()).parent if abi else get_stable_dir()
    except FileNotFoundError as error:
        raise CommandError(str(error)) from error
    # A virtual environment has its own headers, such as greenlet's, beside those of its Python.
    python = dict.fromkeys(sysconfig.get_path(name) for name in ("include", "platinclude"))
    values = {
        "version": version,
        "torch": torch.version,
        "abi": torch.abi,
        "pxd": pxd,
        "include": include,
        "cmake": cmake,
        "bootstrap": str(Path(source, "bootstrap.cpp")),
        "include_dirs": [include, *torch.include_dirs, *python],
        "cflags": [*CXX_FLAGS, *openmp_flags()],
        "library_dirs": [torch.lib_dir],
        "ldflags": [],
        "libraries": list(LIBRARIES),
        "suffix": EXTENSION_SUFFIXES[0],
    }
    if abi:
        macros = [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in abi.macros]
        values |= {
            "include_dirs": [str(Path(stable, "include")), include, torch.include_dirs[0], *python],
            "cflags": [*CXX_FLAGS, VISIBILITY, *macros],
            "library_dirs": [str(stable)],
            "ldflags": [export_flag()],
            "libraries": [STABLE_LIBRARY],
            "suffix": abi.suffix,
        }
    return values


def installed() -> tuple[str, Torch]:
    """The version of this package, and the installed torch; `CommandError` if the package was not built for it."""
    torch = find_torch()
    if torch is None:
        raise CommandError("torch is not installed in this environment; run: pip install torch")
    try:
        from interop import _build_info
    except ImportError as error:
        raise CommandError(
            "this is the source folder of torch-interop, without its compiled half; leave this folder, or build it "
            "here with `pip install --no-build-isolation -e .`"
        ) from error
    if torch.abi != _build_info.ABI:
        raise CommandError(
            f"torch-interop was built for torch {_build_info.TORCH}, but torch {torch.version} is installed. "
            "See: python -m interop doctor"
        )
    return _build_info.VERSION, torch
