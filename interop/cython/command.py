"""``python -m interop cythonize``: a source from Cython to C++ as `interop.build` does it, for other build systems."""

import filecmp
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from interop.cli import USAGE, CommandError, Parser
from interop.cython.declarations import Dependencies
from interop.paths import get_pxd_dir

__all__ = ["main", "translate"]


def main(arguments: list[str]) -> None:
    """Run ``python -m interop cythonize`` with `arguments`."""
    parser = Parser(
        prog="python -m interop cythonize",
        description="Translate a .pyx to C++, with the declarations on the path and what interop.build checks.",
    )
    parser.add_argument("source", metavar="SOURCE.pyx")
    parser.add_argument("--output", metavar="FILE.cpp", required=True, help="the C++ file")
    parser.add_argument("--headers", metavar="DIR", required=True, help="headers for it, before all others: -IDIR")
    parser.add_argument("--module", metavar="NAME", help="the module's full name; that of the source, if not given")
    parser.add_argument("--include", metavar="DIR", action="append", default=[], help="search for .pxd files here too")
    parser.add_argument("--depfile", metavar="FILE", help="what the C++ file depends on, as make and ninja read it")
    options = parser.parse_args(arguments)
    source = Path(options.source)
    if not source.is_file():
        raise CommandError(f"SOURCE.pyx must be a file, and there is no {str(source)!r}", USAGE)
    if source.suffix not in (".pyx", ".py"):
        raise CommandError(f"SOURCE.pyx must end in .pyx, or .py, got {str(source)!r}", USAGE)
    depfile = Path(options.depfile) if options.depfile else None
    module = options.module or source.stem
    translate(source, module, Path(options.output), Path(options.headers), options.include, depfile)


def translate(
    source: Path,
    module: str,
    output: Path,
    headers: Path,
    include: Sequence[str] = (),
    depfile: Path | None = None,
) -> None:
    """Write the C++ file `output`, and into the folder `headers` what it includes of ours, cut down to what it needs.

    Parameters
    ----------
    source
        The ``.pyx``.
    module
        The full dotted name of the module.
    include
        Folders with further ``.pxd`` files.
    depfile
        Where to write what `output` depends on.

    Raises
    ------
    CommandError
        If Cython, or one of the checks of `interop.build`, refuses the source. What Cython says goes to stderr.
    """
    from Cython.Compiler.Errors import CompileError

    from interop.build import Extension, cythonize

    try:
        extension = Extension(module, [str(source)])
    except ValueError as error:
        raise CommandError(f"--module: {error}", USAGE) from error
    folder = output.parent / f"{output.stem}.cythonize"
    root = _package_root(source)
    include = [root, *include]
    try:
        # Whether it is out of date, the build system has found out, by the depfile.
        (translated,) = cythonize(extension, build_dir=str(folder), include_path=list(include), force=True, quiet=True)
    except SyntaxError as error:
        where = f"{error.filename}:{error.lineno}: " if error.filename else ""
        raise CommandError(f"{where}{error.msg}") from error
    except CompileError as error:
        raise CommandError(f"Cython cannot translate {source}") from error
    (written,) = translated.sources
    selected = Path(translated.include_dirs[0])
    shutil.copyfile(written, output)  # also one that is the same: make looks at its date
    for header in selected.rglob("*.h"):
        _update(headers / header.relative_to(selected), header)
    if depfile:
        read = Dependencies([get_pxd_dir(), *include], Path(get_pxd_dir())).read_by(str(source))
        # The note of the build, because another one may translate otherwise.
        words = [os.path.abspath(output) + ":", *sorted(read), str(Path(__file__).parents[1] / "_build_info.py")]
        depfile.write_text(" \\\n  ".join(word.replace(" ", "\\ ").replace("$", "$$") for word in words) + "\n")


def _package_root(source: Path) -> str:
    """The folder that the package of a source lies in, from which its own modules are cimported."""
    folder = source.resolve().parent
    while (folder / "__init__.py").exists():
        folder = folder.parent
    return str(folder)


def _update(target: Path, path: Path) -> None:
    """Copies a file, and leaves one that is the same alone, so that what includes it is not compiled again."""
    if not (target.is_file() and filecmp.cmp(path, target, shallow=False)):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
