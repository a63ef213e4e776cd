"""``python -m interop cythonize``: translate a source to C++ as `interop.build` does, for other build systems."""

import contextlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from interop.cli import USAGE, CommandError, Parser, is_file
from interop.config import installed
from interop.paths import get_include

__all__ = ["main"]

DAY = 24 * 60 * 60  # seconds
BUILD_INFO = Path(__file__).parents[1] / "_build_info.py"


def main(arguments: list[str]) -> None:
    """Run ``python -m interop cythonize`` with `arguments`."""
    parser = Parser(
        prog="python -m interop cythonize",
        description="Translate a .pyx to C++, with the declarations on the path and the checks of interop.build.",
        examples={
            "python -m interop cythonize m.pyx --output build/m.cpp --headers build/headers": "for a module `m`",
            "python -m interop cythonize src/cells/ops.pyx --module cells.ops --output build/ops.cpp --headers build/h "
            "--depfile build/ops.d": "for one in a package; make and ninja then know what it cimports",
        },
    )
    parser.add_argument("source", metavar="SOURCE.pyx")
    parser.add_argument("--output", metavar="FILE.cpp", required=True, help="the C++ file")
    parser.add_argument(
        "--headers",
        metavar="DIR",
        required=True,
        help="the folder for headers that the C++ needs; pass it first, as -IDIR",
    )
    parser.add_argument("--module", metavar="NAME", help="the module's full name (the default: the name of the source)")
    parser.add_argument(
        "--include", metavar="DIR", action="append", default=[], help="search this folder for .pxd files too"
    )
    parser.add_argument(
        "--stable", action="store_true", help="translate for many releases of torch; see: config --stable"
    )
    parser.add_argument("--depfile", metavar="FILE", help="write the dependencies of the C++ file, for make and ninja")
    options = parser.parse_args(arguments)
    installed()
    # Imported here, because Cython would slow --help down.
    from Cython.Utils import is_cython_generated_file

    from interop.cython.declarations import write_whole
    from interop.cython.dependencies import package_root
    from interop.cython.translate import TranslationError, check_name, check_written, translate

    source = Path(options.source)
    if not is_file(source):
        raise CommandError(f"SOURCE.pyx must be a file, but {_instead(source)}", USAGE)
    if source.suffix not in (".pyx", ".py"):
        raise CommandError(f"SOURCE.pyx must end in .pyx, or .py, got {str(source)!r}", USAGE)
    headers, output = Path(options.headers), Path(options.output)
    if output.exists() and not output.is_file():  # Cython would remove it
        raise CommandError(f"FILE.cpp must be a file or not exist, but {_instead(output)}", USAGE)
    module = options.module or source.stem
    try:
        check_name(module)
    except ValueError as error:
        raise CommandError(f"--module: {error}", USAGE) from error
    if "*" in module:
        raise CommandError(f"--module must name one module, got {module!r}", USAGE)
    declarations = output.parent / f"{output.stem}.cythonize"
    # FILE.cpp comes last, because a build system takes it for the result of a run that did not fail.
    # In a folder of this run's own, because `make -j` may run one command several times at once.
    unfinished: Path | None = None
    try:
        check_written("FILE.cpp", os.path.abspath(output))
        declarations.mkdir(parents=True, exist_ok=True)
        for left in declarations.glob("unfinished-*"):
            with contextlib.suppress(FileNotFoundError):  # of a run that ends just now
                if time.time() - left.stat().st_mtime > DAY:
                    shutil.rmtree(left, ignore_errors=True)  # of a run that was killed
        unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=declarations))
        # Always translate: the build system has checked the depfile.
        translation = translate(
            str(source),
            module,
            unfinished / output.name,
            declarations=declarations,
            include_path=[package_root(str(source)), *options.include, get_include()],
            stable=options.stable,
            limited_api=options.stable,  # perhaps: only the flags of the compiler say so
            echo=True,
            emit_linenums=True,
        )
        written = sorted(unfinished.iterdir(), key=lambda one: one.name == output.name)  # perhaps public headers
        for target in (output.parent / path.name for path in written):
            if target.exists() and not target.is_file():
                raise CommandError(f"{str(target)!r} must be a file or not exist, but {_instead(target)}")
            # As Cython asks before it writes there.
            if not is_cython_generated_file(str(target), allow_failed=target == output, if_not_found=True):
                raise CommandError(f"{target} exists, and Cython did not write it: remove it, or change --output")
        selected = Path(translation.include_dirs[0])
        for header in selected.rglob("*.h"):
            # Unchanged ones stay as they are, so that sources that include them are not compiled again.
            write_whole(headers / header.relative_to(selected), header.read_text())
        if options.depfile:
            _write_depfile(Path(options.depfile), options.output, translation.read)
        for path in written:
            os.replace(path, output.parent / path.name)
    except TranslationError as error:
        where = ":".join(str(part) for part in (error.filename, error.lineno) if part)  # already the shortest path
        raise CommandError(f"{where}: {error.msg}" if where else error.msg) from error
    finally:
        if unfinished is not None:
            shutil.rmtree(unfinished, ignore_errors=True)


def _write_depfile(depfile: Path, output: str, read: Iterable[str]) -> None:
    # With BUILD_INFO, because another build of this package may translate differently. Paths with = do not come first,
    # where make takes one for the value of a variable.
    paths = sorted((str(BUILD_INFO), *read), key=lambda one: ("=" in one, one))
    for path, misread in ((output, "[=%]"), (paths[0], "=")):
        if found := re.search(misread, path):
            message = f"make does not find the dependencies with {found[0]!r} in the path {path!r}; ninja and CMake do"
            print(f"warning: --depfile: {message}", file=sys.stderr)
    words = [_for_make(path) for path in paths]
    # The output's path as it was given, as compilers write it: make and ninja know the file by it.
    text = " \\\n  ".join([f"{_for_make(output)}:", *words])
    depfile.write_bytes(os.fsencode(text + "\n"))


def _instead(source: Path) -> str:
    """What is in the place of a file."""
    if not os.path.lexists(source):
        return f"there is no {str(source)!r}"
    kind = "a folder" if source.is_dir() else "not a file" if source.exists() else "a link that leads to no file"
    return f"{str(source)!r} is {kind}"


def _for_make(path: str) -> str:
    """A path as make and ninja read it in a depfile."""
    if found := re.search(r"[;|\n]", path):  # a recipe, or a list of another kind; make has no escape for them
        raise CommandError(f"--depfile: a path must not contain {found[0]!r}, got {path!r}; rename it")
    # Backslashes are halved before a space, which also ends a path. Before # and : only make does so.
    path = re.sub(r"(\\*)( |$)", lambda found: found[1] * 2 + found[2].replace(" ", "\\ "), path)
    return re.sub("[#:]", r"\\\g<0>", path).replace("$", "$$")
