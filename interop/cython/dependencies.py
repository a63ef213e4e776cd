"""The files that a source includes and cimports, and the settings of its ``# distutils:`` lines."""

import contextlib
import os
import re
import threading
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import Cython
from Cython.Build.Dependencies import DependencyTree, DistutilsInfo, parse_dependencies
from Cython.Compiler.Main import Context
from Cython.Compiler.Options import CompilationOptions, default_options, get_directive_defaults
from Cython.Utils import find_root_package_dir

from interop.cython.patches import Patch, applied

__all__ = ["Dependencies", "cimports", "package_root", "read_source", "unforeseen"]


MOST_INCLUDED = 100
"""How often a source may include a file that itself includes others. Cython has no limit, and its recursion crashes."""

FEW_INCLUDED = 3
"""How often it is included at least, if a recursion that Python itself ends is that of including it. Includes in nested
blocks, and callers with a deep stack, leave room for few."""

INCLUDE = r"(?m)(?:^|[;:])[ \t\f]*include\b"
"""Where an include statement may begin."""


class Dependencies(DependencyTree):
    """The files that Cython will read for a source. Our declarations need no others, so they are not searched."""

    def __init__(self, include_path: Iterable[str], ours: Iterable[Path]):
        options = CompilationOptions(default_options)
        super().__init__(_Context(list(include_path), get_directive_defaults(), options=options), quiet=True)
        self._closed = [os.path.abspath(one) for one in (*ours, Path(Cython.__file__).parent)]

    def cimported_files(self, filename: str) -> Iterable[str]:
        return () if self.is_ours(filename) else super().cimported_files(filename)

    def parse_dependencies(self, source_filename: str) -> Any:
        if os.path.exists(source_filename) and not os.path.isfile(source_filename):
            # To read a pipe or a device could take for ever.
            raise SyntaxError(f"{source_filename}, which the source includes or cimports, is not a file")
        _refuse_unknown_encoding(source_filename)
        try:
            return super().parse_dependencies(source_filename)
        except KeyError as error:
            raise _wrong_quote(source_filename) or error from None

    def distutils_info0(self, filename: str) -> Any:
        """The settings of its own ``# distutils:`` lines, all of which exist."""
        try:
            from Cython.Build.Dependencies import distutils_settings
        except ImportError:  # in another release of Cython, which may say less about a wrong setting
            return super().distutils_info0(filename)
        *_, info = self.parse_dependencies(filename)
        for key in info.values.keys() - distutils_settings.keys():
            message = f"# distutils: has no setting {key!r}; it has {', '.join(sorted(distutils_settings))}"
            raise _wrong_line(message, filename, rf"^\s*#\s*distutils:\s*(?={re.escape(key)})")
        return super().distutils_info0(filename)

    def is_ours(self, path: str) -> bool:
        """Whether a file is one of our declarations, or of Cython's."""
        return any(map(Path(os.path.abspath(path)).is_relative_to, self._closed))

    def read_by(self, source: str) -> set[str]:
        """The source and the files that it includes and cimports, without those that our own declarations cimport."""
        # Absolute, because Cython caches files by name, even after a change of the working directory.
        try:
            return self.all_dependencies(os.path.abspath(source))
        except RecursionError:
            raise _wrong_line("a file is included by itself, or through too many others", source, "^") from None


class _Context(Context):
    """Cython's context, with the line in the error about a missing included file."""

    def find_include_file(self, filename: str, pos: Any = None, source_file_path: str | None = None) -> str | None:
        found = self.search_include_directories(
            filename, source_pos=pos, include=True, source_file_path=source_file_path
        )
        if found or source_file_path is None:
            return found
        raise _wrong_line(
            f"there is no file {filename!r} to include, neither beside this file nor in the search path",
            source_file_path,
            rf"^[ \t]*include[ \t]+(?=['\"]{re.escape(filename)}['\"])",
        )


@contextlib.contextmanager
def unforeseen(foresees: Callable[[str], bool]) -> Iterator[list[str]]:
    """In this context, Cython's compiler stops before it reads an unexpected file. Yields a list for that file.

    `Dependencies` searches the text for ``include`` and ``cimport``. It misses ``include u"x.pxi"`` and statements
    after a semicolon.
    """
    found: list[str] = []
    opened: Counter[str] = Counter()
    thread = threading.get_ident()  # other threads may use Cython directly

    def look(original: Callable[..., None]) -> Callable[..., None]:
        def initialise(self: Any, filename: str, *rest: Any) -> None:
            original(self, filename, *rest)
            path = os.path.abspath(self.filename)
            if thread != threading.get_ident():
                return
            if not foresees(path):
                from Cython.Compiler.Errors import AbortError

                found.append(path)
                raise AbortError(path)
            opened[path] += 1
            if opened[path] > MOST_INCLUDED and re.search(INCLUDE, read_source(path)):
                raise SyntaxError(f"a file is included by itself, or more than {MOST_INCLUDED} times", (path, 1, 1, ""))

        return initialise

    missed = "the key of a translation lacks such files, and the next build does not see their changes"
    with applied([Patch("Scanning:FileSourceDescriptor.__init__", look, without=missed)]):
        try:
            yield found
        except RecursionError:  # a Cython that is not compiled reaches Python's limit first
            path, times = max(opened.items(), key=lambda item: item[1], default=("", 0))
            if times < FEW_INCLUDED or not re.search(INCLUDE, read_source(path)):
                raise
            raise SyntaxError(f"a file is included by itself, or more than {times} times", (path, 1, 1, "")) from None


def _refuse_unknown_encoding(path: str) -> None:
    """Raise SyntaxError with the file and the line, which Cython omits."""
    try:
        from Cython.Utils import detect_opened_file_encoding
    except ImportError:  # in another release of Cython
        return
    with open(path, "rb") as file:
        name = detect_opened_file_encoding(file)
    try:
        fits = b"a".decode(name, "ignore") == "a"  # as Cython decodes
        message = f"a source in the encoding {name} must have ASCII's bytes for its characters; save it in UTF-8"
    except (LookupError, UnicodeError) as error:
        fits, message = False, str(error)
    if not fits:
        raise _wrong_line(message, path, rf"coding[:=]\s*(?={re.escape(name)})")


def _wrong_quote(path: str) -> SyntaxError | None:
    """The error of the first comment for distutils that Cython cannot split into its values."""
    for line in read_source(path).split("\n"):
        try:
            DistutilsInfo(line)
        except KeyError:
            message = "in a comment for distutils, a value that begins with a quote must end with it"
            return _wrong_line(message, path, rf"^(?={re.escape(line)}$)")
    return None


def _wrong_line(message: str, path: str, before: str) -> SyntaxError:
    """An error in the source `path`, at the end of the first match of `before`."""
    text = read_source(path)
    found = re.search(before, text, re.MULTILINE)
    line, column = 1, 1
    if found:
        line, column = text.count("\n", 0, found.end()) + 1, found.end() - text.rfind("\n", 0, found.end())
    return SyntaxError(message, (path, line, column, text.split("\n")[line - 1]))


def cimports(source: str) -> set[str]:
    """The packages that a source cimports from, without what its own ``.pxd`` files cimport."""
    found, *_ = parse_dependencies(source)
    return {name.partition(".")[0] for name in found}


def package_root(source: str) -> str:
    """The root folder of a source's package, from which the package's own modules are cimported."""
    return str(find_root_package_dir(os.path.abspath(source)))


def read_source(path: str) -> str:
    """The text of a source, in the encoding that its first lines name. Cython reports wrong encodings."""
    try:
        with tokenize.open(path) as file:
            return file.read()
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return Path(path).read_text(encoding="utf-8", errors="replace")
