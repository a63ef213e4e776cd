"""`translate` turns one ``.pyx`` into C++. Nothing else starts Cython's compiler."""

import concurrent.futures.thread  # noqa: F401 (so that its fork hook, whose lock a translation may take, is older)
import contextlib
import fnmatch
import functools
import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from Cython import Utils, __version__
from Cython.Build.Dependencies import DistutilsInfo
from Cython.Compiler import Errors
from Cython.Compiler.Main import compile_single
from Cython.Compiler.Options import CompilationOptions, default_options

from interop.cython.checks import checked
from interop.cython.declarations import select
from interop.cython.dependencies import Dependencies, unforeseen
from interop.cython.diagnostics import Diagnostic, causes, shortest_path
from interop.cython.hints import HINT, hints
from interop.cython.patches import PATCHES, WHOLE_PATHS, applied
from interop.cython.versions import check_version
from interop.errors import Error
from interop.garbage_collection import without_collections
from interop.paths import get_include, get_pxd_dir, get_stable_dir

__all__ = [
    *("DIRECTIVES", "Source", "Translation", "TranslationError"),
    *("check_name", "check_written", "collected", "rules", "translate"),
]

DIRECTIVES: dict[str, Any] = {
    "language_level": 3,
    # A parameter of a cdef class accepts None, and reading its .cdata would crash.
    "nonecheck": True,
    # Python prints them with "Exception ignored". For those that interop/callback.h raises, nothing must be printed.
    "unraisable_tracebacks": False,
}
"""The default Cython directives; a ``# cython:`` line in a source overrides them."""

_ENDS = re.compile(r"\*/|\?\?/|[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]")
"""The end of a comment or a line, a trigraph for a backslash, and characters outside UTF-8."""

_AND = " with "

_TYPES = re.compile(r"'[^']*'|\([^)]*\)")
"""The parts that differ between messages about one cause, if a function is compiled for several types."""

# Cython keeps caches and settings for the whole process, and our patches apply to all threads.
_one_at_a_time = threading.RLock()
# A forked child would inherit these half changed, and the lock held forever. So a fork waits for the translation of
# another thread, and that translation waits for no other thread.
os.register_at_fork(
    before=_one_at_a_time.acquire, after_in_parent=_one_at_a_time.release, after_in_child=_one_at_a_time.release
)


class TranslationError(Error, SyntaxError):
    """Cython, or one of our checks, rejects a source.

    The attributes of `SyntaxError` describe the first error: its file, line and column.

    Attributes
    ----------
    diagnostics : tuple of interop.jit.Diagnostic
        The errors that are not consequences of others.
    output : str
        The whole output of Cython.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic], output: str):
        self.diagnostics = tuple(diagnostics)
        self.output = output
        first = self.diagnostics[0]
        path = first.path and shortest_path(first.path)
        super().__init__(first.message, (path, first.line, first.column, first.text))

    def __reduce__(self) -> tuple[Any, ...]:
        return TranslationError, (self.diagnostics, self.output)


@dataclass(frozen=True)
class Translation:
    """The result of a translation."""

    read: frozenset[str]  # the source and the files that it reads, without those that our declarations cimport
    # Header folders that the C++ also needs, to search before the given ones.
    include_dirs: tuple[str, ...]


class Source:
    """A ``.pyx`` and the files that it reads, before translation.

    `include_path` lists folders with ``.pxd`` files, and need not include ours. `declarations` is a folder with
    further declarations of ours. `read` is the same as in `Translation`, and `added` has the files given to `add`.
    """

    def __init__(self, path: str, include_path: Iterable[str] = (), declarations: Path | None = None):
        self.path = path
        self.pxd = Path(get_pxd_dir())
        self.include_path = list(include_path)
        # Files may have changed since they were last read in this process.
        Utils.clear_function_caches()
        ours = (self.pxd, *([declarations] if declarations else []))
        self._tree = Dependencies([str(self.pxd), *self.include_path], ours)
        self.read = frozenset(self._tree.read_by(path))
        self.added: set[str] = set()

    def add(self, path: str) -> None:
        """Add a file and the files that it reads. `Dependencies` misses statements that share a line."""
        self.added.add(path)
        self.read = self.read.union([path], self._tree.read_by(path))

    def foresees(self, path: str) -> bool:
        """Whether a file is among `read`, or one of ours or of Cython's."""
        return self._tree.is_ours(path) or path in map(os.path.abspath, self.read)

    def distutils(self) -> DistutilsInfo:
        """The settings of its ``# distutils:`` lines."""
        return self._tree.distutils_info(self.path)

    def of_user(self) -> list[str]:
        """The files among `read` that are neither ours nor Cython's."""
        return [path for path in self.read if not self._tree.is_ours(path)]


def check_name(name: str) -> None:
    """Raise ValueError unless `name` is the dotted name of a module, or a pattern for such names."""
    parts = name.split(".") if isinstance(name, str) else [""]
    if not all((part.isidentifier() and part.isascii()) or part == "*" for part in parts) or parts[-1] == "__init__":
        raise ValueError(
            f"name must be a module's dotted name in ASCII, such as 'package.module', not an __init__, got {name!r}"
        )


def translate(
    path: str,
    module: str,
    cpp: Path,
    *,
    declarations: Path,
    include_path: Iterable[str] = (),
    directives: Mapping[str, Any] | None = None,
    cplus: bool = True,
    stable: bool = False,
    limited_api: bool = False,
    echo: bool = False,
    whole_paths: bool = False,
    force: bool = True,
    started: Callable[[DistutilsInfo], object] | None = None,
    **options: Any,
) -> Translation:
    """Translate the ``.pyx`` at `path` to the file `cpp`, with our declarations on the path, checks and `DIRECTIVES`.

    Parameters
    ----------
    module
        The full dotted name of the module.
    declarations
        The folder for the declarations and headers that the source can need: see `declarations.select`.
    include_path, directives
        Folders with further ``.pxd`` files, and Cython's directives in addition to `DIRECTIVES`.
    cplus
        Whether to write C++ and not C.
    stable
        Whether the module is for many releases of torch: see `interop.build.Extension`.
    limited_api
        Whether the C++ may be compiled with Py_LIMITED_API, which makes exception checks slower.
    echo
        Whether Cython prints its errors and warnings to stderr.
    whole_paths
        Whether tracebacks name the source by its whole path.
    force
        Whether to translate even if `cpp` was made from the same files with the same arguments.
    started
        Called before Cython's compiler starts, with the settings of the ``# distutils:`` lines.
    **options
        Options of Cython's `CompilationOptions`.

    Raises
    ------
    TranslationError, CythonVersionError
        If the source is wrong, or this Cython is too old.
    """
    check_version()
    with _one_at_a_time, without_collections(), collected() as output:
        check_written("the name of a module", module)
        for one in (path, declarations, get_pxd_dir()):
            check_written("a path", os.path.abspath(one))
        source = Source(path, include_path, declarations)
        before = "" if force else _last_line(cpp)
        with contextlib.suppress(OSError, SyntaxError, ValueError):  # the source may no longer read these
            for one in _added(before):
                source.add(one)
        is_started = False
        while True:
            for one in source.read:
                check_written("the path of a file that is read", os.path.abspath(one))
            instead = (Path(get_stable_dir(), "pxd"), Path(get_stable_dir(), "include")) if stable else None
            selection = select(source.of_user(), source.pxd, Path(get_include()), declarations, instead)
            folders = [str(selection.include), *([str(instead[1])] if instead else []), *_numpy_include(source.read)]
            translation = Translation(source.read, tuple(folders))
            # Cython does not escape the path in a #line directive. Without directives, g++ reports lines of the C++.
            has_lines = options.get("emit_linenums", False) and not any('"' in one for one in source.read)
            arguments = options | {
                "include_path": [str(selection.pxd), *([] if stable else [str(source.pxd)]), *source.include_path],
                "compiler_directives": DIRECTIVES | dict(directives or {}),
                "cplus": cplus,
                "emit_linenums": has_lines,
            }
            last_line = f"// translated from {_key(source, selection.digest, module, arguments)}"
            last_line += f"{_AND}{json.dumps(sorted(source.added))}\n" if source.added else "\n"
            if before == last_line:
                return translation
            if source.added and not is_started:
                # Something has changed, so Cython must find the added files again.
                source, before = Source(path, include_path, declarations), ""
                continue
            if started and not is_started:
                started(source.distutils())
            is_started = True
            compilation = CompilationOptions(default_options, output_file=str(cpp), errors_to_stderr=echo, **arguments)
            cpp.parent.mkdir(parents=True, exist_ok=True)
            with (
                rules(selection.pxd, () if limited_api else (*folders, get_include())),
                applied(WHOLE_PATHS if whole_paths else ()),
                unforeseen(source.foresees) as missed,
            ):
                try:
                    result = compile_single(path, compilation, full_module_name=module)
                except UnicodeEncodeError as error:
                    part = error.object[error.start : error.end]
                    message = f"Cython cannot write {part!a} in {error.encoding}, from a string or a name in the source"
                    raise TranslationError([Diagnostic(message, os.path.abspath(path))], message) from error
            if not missed:
                break
            source.add(missed[0])
            output.clear()
        if result.num_errors:
            raise TranslationError(causes(output.diagnostics) or [_unknown(result.num_errors)], str(output))
        if stable:
            _drop_ios(cpp)
        with cpp.open("a", encoding="ascii") as file:
            file.write(last_line)
    return translation


def _drop_ios(cpp: Path) -> None:
    """Drop <ios>, which only Cython's own exception handler needs, if the C++ does not use that handler.

    For a module for one release of torch this makes no difference, because torch's headers include <ios>.
    """
    text = cpp.read_bytes()
    if b"__Pyx_CppExn2PyErr" not in text:
        cpp.write_bytes(text.replace(b'#include "ios"\n', b"\n", 1))


def check_written(what: str, text: str) -> None:
    """Raise `TranslationError` for text that would end a comment in the C++: the rest would be compiled as code."""
    found = _ENDS.search(text.replace("\\", "/"))  # as Cython writes it
    if found:
        part = text[slice(*found.span())]
        text = f"{what} must not contain {part!r}, because it is written into the C++; rename {text!r}"
        raise TranslationError([Diagnostic(text)], text)


@contextlib.contextmanager
def rules(pxd: Path, include: Sequence[str] = ()) -> Iterator[None]:
    """In this context, Cython's compiler has our patches, checks and hints: see `hints`."""
    with applied(PATCHES), checked(), hints(pxd, include):
        yield


def _key(source: Source, *arguments: object) -> str:
    """A hash of the inputs of the C++ and of our checks; `arguments` include the declarations."""
    found = hashlib.sha256(repr([__version__, _own_digest(), arguments]).encode("utf-8", "surrogateescape"))
    for path in sorted(source.of_user()):
        found.update(path.encode("utf-8", "surrogateescape") + Path(path).read_bytes())
    return found.hexdigest()


@functools.cache
def _own_digest() -> str:
    """A hash of our checks and patches."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _last_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(-min(65536, os.stat(path).st_size), os.SEEK_END)
            return file.read().decode("ascii", "replace").splitlines(keepends=True)[-1]
    except (OSError, IndexError):
        return ""


def _added(last_line: str) -> list[str]:
    """The files given to `Source.add` when the C++ with this last line was made."""
    if not last_line.startswith("// translated from "):
        return []
    return json.loads(last_line.partition(_AND)[2] or "[]")


def _numpy_include(read: Iterable[str]) -> list[str]:
    # The name of NumPy's .pxd may have Cython's version in it: __init__.cython-30.pxd.
    if not any(fnmatch.fnmatch(path, "*/numpy/__init__.*pxd") for path in read):
        return []
    import numpy

    return [numpy.get_include()]


class _Output:
    """Cython's messages."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._texts: list[str] = []
        self._seen: set[tuple[Any, ...]] = set()

    def clear(self) -> None:
        """Discard all messages."""
        self.diagnostics.clear()
        self._texts.clear()
        self._seen.clear()

    def has(self, error: Errors.CompileError) -> bool:
        """Whether this place has the same message already, perhaps for another type of a fused function."""
        return error.position is not None and _cause(error) in self._seen

    def add(self, error: Errors.CompileError) -> None:
        self._texts.append(str(error))
        self._seen.add(_cause(error))
        message, *more = (error.message_only or "").strip().splitlines() or [""]
        hint = next((line.removeprefix(HINT) for line in more if line.startswith(HINT)), None)
        if error.position is None:
            self.diagnostics.append(Diagnostic(message, hint=hint))
            return
        source, line, column = error.position[:3]
        lines = source.get_lines(error_handling="replace")
        text = lines[line - 1] if 0 < line <= len(lines) else None
        path = getattr(source, "filename", None)
        self.diagnostics.append(Diagnostic(message, path, line, column + 1, text, hint))

    def __str__(self) -> str:
        return "\n".join(self._texts)


@contextlib.contextmanager
def collected() -> Iterator[_Output]:
    """Collect Cython's errors, and raise errors of Cython and of our checks as a `TranslationError`."""
    output = _Output()
    kind: Any = Errors.CompileError
    kind.reported = _Reported(output)
    try:
        yield output
    except TranslationError:
        raise
    except SyntaxError as error:
        line = _line(error)
        column = max(error.offset or 1, 1 + len(line) - len(line.lstrip()))
        ours = Diagnostic(error.msg, error.filename and os.path.abspath(error.filename), error.lineno, column, line)
        # Add Cython's earlier errors, except those about the same line.
        others = [one for one in causes(output.diagnostics) if one.line != ours.line]
        raise TranslationError([ours, *others], "\n".join(filter(None, [str(output), str(error)]))) from None
    except Errors.PyrexError as error:
        if isinstance(error, Errors.CompileError) and not error.reported:
            output.add(error)
        raise TranslationError(
            causes(output.diagnostics) or [Diagnostic(str(error))], str(output) or str(error)
        ) from error
    finally:
        del kind.reported


def _cause(error: Errors.CompileError) -> tuple[Any, ...]:
    source, line, column = error.position[:3] if error.position else (None, 0, 0)
    return (id(source), line, column, _TYPES.sub("", error.message_only or ""))


class _Reported:
    """The mark `reported`: Cython sets it in an error that it reports, not in one that it holds back and may drop.

    Cython's own function is compiled into its callers, so it cannot be patched.
    """

    def __init__(self, output: _Output):
        self._output = output

    def __get__(self, error: Errors.CompileError, owner: type) -> bool:
        return bool(vars(error).get("reported")) or self._output.has(error)

    def __set__(self, error: Errors.CompileError, value: bool) -> None:
        if value and not vars(error).get("reported"):
            self._output.add(error)
        vars(error)["reported"] = value


def _unknown(count: int) -> Diagnostic:
    """The stand-in for errors that a release of Cython reports in a way that `_Reported` does not see."""
    return Diagnostic(f"Cython {__version__} reports {count} errors; to see them, run: cython --cplus on the source")


def _line(error: SyntaxError) -> str:
    try:
        with open(error.filename or "", encoding="utf-8", errors="replace") as file:
            return file.read().split("\n")[(error.lineno or 1) - 1]
    except (OSError, IndexError):
        return error.text or ""
