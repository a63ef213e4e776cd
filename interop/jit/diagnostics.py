"""Errors of a build: `BuildError`, and the lines of the sources that a compiler's output refers to."""

import errno
import fnmatch
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from interop.cython.declared_names import names_in, names_of_methods
from interop.cython.diagnostics import DIVISION, Diagnostic
from interop.errors import Error
from interop.paths import get_cache_dir, get_pxd_dir

__all__ = [
    "BuildError",
    "CacheError",
    "CommandFailedError",
    "Diagnostic",
    "Generated",
    "explain_os_error",
    "fullest_folder",
    "parse_output",
]

MAX_SHOWN = 5
"""Maximum number of errors shown in a message; usually the first causes the rest."""

_LOCATED = re.compile(
    r"^(?P<path>[^\n:]+?)(?::(?P<line>\d+)(?::(?P<column>\d+))?|\((?P<nvcc>\d+)\)): *"
    r"(?:(?P<kind>fatal error|error|warning|note): )?(?P<message>.*)$"
)
_FROM = re.compile(r"^ *(?:In file included )?from (?P<path>[^\n:]+):(?P<line>\d+)")
_MARK = re.compile(r'^ */\* "(?P<path>[^"]+)":(?P<line>\d+)$')
_MISSING = re.compile(r"^(?:(?P<gcc>[^':]+): No such file|'(?P<clang>[^']+)' file not found)")
_LEADS_IN = re.compile(r": (?:In|At) ")
_INSTANCE = re.compile(r": [Ii]n instantiation of ")
# convert.h says this of an argument; the types, and the function of ATen, are in the lines around it.
_ARGUMENT = "this parameter takes no argument of type A"
_NO_OVERLOAD = "no overload of this function takes arguments of these types"
# What C++ alone rejects of symbolic numbers, and of types that C++ instantiates.
_HINTS = [
    (re.compile(message), instead)
    for message, instead in (
        DIVISION,
        (
            r"invalid cast from type '(?:c10::)?SymInt'|cannot convert '(?:c10::)?SymInt' to '\w+' without|"
            r"no matching conversion for C-style cast from '(?:c10::)?SymInt'",
            "keep it as an at.SymInt, because the size may be symbolic",
        ),
        (
            r"no match for 'operator!' \(operand type is 'c10::SymBool'|invalid argument type 'c10::SymBool'|"
            r".* from 'c10::SymBool' to 'bool'|value of type 'c10::SymBool' is not contextually",
            "write a.sym_or(b), a.sym_and(b) and a.sym_not() for an at.SymBool",
        ),
        (
            r"(?:no match for 'operator|type '|invalid operands to binary).*__Pyx_FakeReference<",
            "Cython keeps what value() and at() return in a class of its own: assign it to a variable first, or write "
            "v.value().at(i) for v.value()[i]",
        ),
        (
            r"(?:dependent-name|'typename' .*) 'std::vector<.*iterator'",
            "Cython cannot name the iterators of a vector[scalar_t]: write sort(v.data(), v.data() + v.size()), and "
            "for i in range(v.size())",
        ),
    )
]
_TYPES = re.compile(
    r"interop::as\(.*\[with P = (?P<P>.+?); A = (?P<A>.+)\]|interop::as<(?P<p>std::array<.+?>|[^,]+), (?P<a>.+)>' req"
)
_TUPLE = re.compile(r"__pyx_ctuple_(?:[0-9a-f]{6}__)?(\w+)")
_ATEN = re.compile(r"\binterop::(?P<kind>function|method)::(?P<name>\w+?)(?:_[ab]\d+)?[(<]")
_TRANSLATED = (".pyx", ".pxd", ".pxi")
_QUOTED = re.compile(r"(?<!\w)'([^']+)'")
_OTHER = re.compile(r"(?:^|: )(?:fatal )?error: (.*)|^\S*ld(?:\.\w+)?: (.*)")


class BuildError(Error, RuntimeError):
    """A module could not be built.

    Attributes
    ----------
    name : str
        The module's name.
    diagnostics : tuple of Diagnostic
        The errors in its sources; empty if something else is wrong, such as a missing compiler.
    output : str
        The whole output of Cython or the compiler.
    command : tuple of str
        The command that failed, if a command failed.
    """

    def __init__(
        self,
        name: str,
        reason: str = "",
        *,
        diagnostics: Sequence[Diagnostic] = (),
        output: str = "",
        command: Sequence[str] = (),
    ):
        super().__init__(name, reason)
        self.name = name
        self.diagnostics = tuple(diagnostics)
        self.output = output
        self.command = tuple(command)
        self._reason = reason

    def __str__(self) -> str:
        shown = [str(one) for one in self.diagnostics[:MAX_SHOWN]]
        if len(self.diagnostics) > MAX_SHOWN:
            shown.append(f"... and {len(self.diagnostics) - MAX_SHOWN} more, see the attribute `diagnostics`")
        first = f"module {self.name!r} cannot be built" + (f": {self._reason}" if self._reason else "")
        return "\n".join([first, *shown])


class CacheError(BuildError):
    """The cache cannot be used, for any module."""

    def __str__(self) -> str:
        return self._reason


class CommandFailedError(Error):
    """A command ended with an error; `output` is its output."""

    def __init__(self, command: Sequence[str], output: str, status: int):
        super().__init__(output)
        self.command, self.output, self.status = command, output, status


def explain_os_error(error: OSError) -> str:
    """Why a file could not be read or written, and what to do about it."""
    advice = "for example with `python -m interop cache --clear`, or name another folder in INTEROP_CACHE_DIR"
    if error.filename and not Path(error.filename).is_relative_to(get_cache_dir()):
        if error.errno != errno.ENOSPC or error.filename != tempfile.gettempdir():
            return f"{error.strerror}: {error.filename}"
        advice = "or name another folder in TMPDIR"
    place = f" {error.filename}" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        folder = Path(error.filename or get_cache_dir())
        disk = f"; {_disk(folder)}" if error.errno == errno.ENOSPC else ""
        return f"there is no space to write {folder} ({error.strerror}){disk}; free some, {advice}"
    if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
        return (
            f"the file system of the cache has no locks:{place} ({error.strerror}); name a folder of another in the "
            "environment variable INTEROP_CACHE_DIR"
        )
    if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR):
        return f"the cache cannot be used:{place} ({error.strerror})"
    return (
        f"the cache cannot be written:{place} ({error.strerror}); name a writable folder in the environment variable "
        "INTEROP_CACHE_DIR"
    )


def fullest_folder() -> str:
    """The folder in which a compiler ran out of space: the cache, or that of its temporary files."""
    folders = [str(get_cache_dir() / "jit"), tempfile.gettempdir()]
    return min(folders, key=lambda folder: shutil.disk_usage(folder).free)


def _disk(path: Path) -> str:
    """Describe the disk of a path and its free space, which is not zero once the file that did not fit is removed."""
    mount = next(filter(os.path.ismount, (path, *path.parents)), Path("/"))
    usage = shutil.disk_usage(mount)
    return f"the disk at {mount} has {usage.free >> 20} of {usage.total >> 20} MiB free"


@dataclass(frozen=True)
class Generated:
    """C++ that Cython wrote, and its source files.

    Origins come from Cython's comments, which are exact, and not from its ``#line`` directives. Lines are counted from
    a directive onwards, so the second line of a statement's C++ would count as the next line of the .pyx.
    """

    cpp: Path
    sources: Sequence[str]

    def origin(self, number: int) -> tuple[str, int] | None:
        """The origin of line `number`, from the comment before it; for C++ in a .pyx, the line with the same text."""
        lines = self._lines()
        for line in reversed(lines[: min(number, len(lines))]):
            mark = _MARK.match(line)
            if mark:
                path = self._file(mark["path"])
                return (path, int(mark["line"])) if path else None
        text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
        return self.mentions(text) if text else None

    def mentions(self, text: str) -> tuple[str, int] | None:
        """The first line of a source that contains `text`."""
        for path in self.sources:
            for number, line in enumerate(_read(path), 1):
                if text in line:
                    return path, number
        return None

    def _file(self, written: str) -> str | None:
        """The source that a comment names, by its last parts or from the current folder; ? is non-ASCII."""
        for path in self.sources:
            if fnmatch.fnmatch(path, f"*{os.sep}{written}") or fnmatch.fnmatch(path, os.path.abspath(written)):
                return path
        return None

    def _lines(self) -> list[str]:
        return _read(str(self.cpp))


def parse_output(output: str, generated: Generated | None, is_users: Callable[[str], bool]) -> list[Diagnostic]:
    """The errors in the output of a compiler. `is_users` says whether a file's lines are the user's.

    An error in a template is listed for the first of its instances. The others differ only in the types, or in how the
    compiler words the same error.
    """
    by_cause: dict[object, Diagnostic] = {}
    asserted: dict[tuple[str | None, int | None], list[Diagnostic]] = {}
    for error, lines in _groups(output.split("\n")):
        one = _diagnostic(error, lines, generated, is_users)
        place = error["path"], error["line"] or error["nvcc"], error["column"], one.path, one.line
        one = by_cause.setdefault(place if any(map(_INSTANCE.search, lines)) else one, one)
        if error["message"].startswith("static assertion failed"):
            asserted.setdefault((one.path, one.line), []).append(one)
    # Such an assertion explains the other errors of its line.
    found = [one for one in by_cause.values() if one in asserted.get((one.path, one.line), [one])]
    if not found:
        lines = [next(filter(None, match.groups())) for match in map(_OTHER.search, output.split("\n")) if match]
        found = [Diagnostic(line) for line in dict.fromkeys(lines)]
    return found


def _groups(lines: Sequence[str]) -> Iterator[tuple[re.Match[str], list[str]]]:
    """Each error with its lines: the error itself, its includes and instantiations, and notes.

    g++ writes the includes and instantiations once, before the first of the messages that have them in common.
    """
    leads: list[str] = []
    pending: list[str] = []  # of the next message, which may be a note
    group: tuple[re.Match[str], list[str]] | None = None
    for line in lines:
        located = _LOCATED.match(line)
        kind = located["kind"] if located else None
        if located and kind and kind != "note":
            if group:
                yield group
            leads = pending or leads
            group = (located, [line, *leads]) if kind.endswith("error") else None
            pending = []
        elif kind is None and (pending or line.startswith("In file included from") or _LEADS_IN.search(line)):
            pending.append(line)
        else:
            pending = []
            if group:
                group[1].append(line)
    if group:
        yield group


def _diagnostic(
    error: re.Match[str], lines: list[str], generated: Generated | None, is_users: Callable[[str], bool]
) -> Diagnostic:
    message, advice = _of_argument(error["message"], lines)
    header = _MISSING.match(message)
    if header:
        name = header["gcc"] or header["clang"]
        message = f"there is no header {name!r} in the search path; add its folder to include_dirs"
        for quoted in (f'"{name}"', f"'{name}'", f"<{name}>"):
            place = generated.mentions(quoted) if generated else None
            if place:
                return _locate(place, None, message, name)
    for line in sorted(lines, key=lambda line: bool(_FROM.match(line))):  # a line that includes says the least
        located = _FROM.match(line) or _LOCATED.match(line)
        if not located:
            continue
        fields = located.groupdict()
        number = int(fields.get("line") or fields["nvcc"])
        path = os.path.abspath(located["path"].strip())
        if generated and path == str(generated.cpp):
            place = generated.origin(number)
            if place:
                return replace(_locate(place, None, message), hint=advice)
        elif is_users(path):
            # A `#line` directive gives the line of a .pyx; the column is still that of the C++.
            column = fields.get("column") if line is lines[0] and not path.endswith(_TRANSLATED) else None
            return replace(_locate((path, number), int(column) if column else None, message), hint=advice)
    return Diagnostic(message, error["path"], int(error["line"] or error["nvcc"]))


def _of_argument(message: str, lines: list[str]) -> tuple[str, str | None]:
    """The message with the types of the argument and the parameter if it is `_ARGUMENT`, and a hint."""
    text = "\n".join(lines)
    types, function = _TYPES.search(text), _ATEN.search(text)
    if _NO_OVERLOAD in message and function and "SymInt" in text:
        return message, _with_symint(function)
    if _ARGUMENT not in message or not types or not function:
        return message, next((hint for pattern, hint in _HINTS if pattern.search(message)), None)
    named = (types["P"] or types["p"], _TUPLE.sub(_tuple_of, types["A"] or types["a"]))
    parameter, argument = (one.replace("long int", "long") for one in named)  # clang's word
    name = function["name"]
    said = f"a parameter of '{name}', of type '{parameter}', takes no argument of type '{argument}'"
    return said, _with_symint(function) if "SymInt" in argument else None


def _with_symint(function: re.Match[str]) -> str | None:
    """The hint for sizes that are symbolic, if ATen has the function for them."""
    is_method = function["kind"] == "method"
    declared = names_of_methods(get_pxd_dir()) if is_method else names_in(get_pxd_dir(), "interop.functions")
    name = f"{function['name']}_symint"
    if name not in declared:
        return None
    return f"for sizes that are an at.SymInt, write {'x' if is_method else 'at'}.{name}(...)"


def _tuple_of(name: re.Match[str]) -> str:
    """The C tuple for a name that Cython made from the types of its elements."""
    parts = [part.rpartition("__in_")[2] if not part.endswith("__etc") else "..." for part in name[1].split("__and_")]
    return f"({', '.join(parts)})"


def _locate(place: tuple[str, int], column: int | None, message: str, header: str | None = None) -> Diagnostic:
    """A diagnostic. Without a usable column, it points at the first name of the message that is in the line."""
    path, number = place
    lines = _read(path)
    text = lines[number - 1] if 0 < number <= len(lines) else ""
    if column is None:
        names = [name for quoted in _QUOTED.findall(message) for name in (quoted, *re.findall(r"\w+", quoted))]
        at = next((text.find(name) for name in (header, *names) if name and name in text), -1)
        column = 1 + (at if at >= 0 else len(text) - len(text.lstrip()))
    return Diagnostic(message, path, number, column, text)


def _read(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return []
