"""Adds to what Cython says of tensors what to write instead."""

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from Cython.Compiler import Errors

from interop.codegen.patch import replaced

__all__ = ["HINT", "hint", "hints"]

HINT = "hint: "
"""What the line with a hint begins with."""

_TO_PYTHON = re.compile(r"Cannot convert '(?:const )?(?:at\.)?Tensor(?: ?&)?' to Python object")
_FROM_PYTHON = re.compile(r"Cannot convert Python object to '(?:const )?C?Tensor\b[^']*'")
_NO_OVERLOAD = re.compile(r"no suitable method found")
_KEYWORD = re.compile(r"C function got unexpected keyword argument '(\w+)'")
# What is declared as Python's tensors; `at.Tensor x` is C++, and a `Tensor x` is what was cimported under that name.
_DECLARED = re.compile(r"(?<![\w.])torch[ \t]*\.[ \t]*Tensor[ \t]+(\w+)")
_DECLARED_SHORT = re.compile(r"(?<![\w.])Tensor[ \t]+(\w+)")
_CIMPORTED = re.compile(
    r"^[ \t]*from[ \t]+([\w.]+)[ \t]+cimport\b(?:[^\n#(]*|[ \t]*\([^)]*)\bTensor\b(?!\s+as\b)", re.M
)
_FUNCTION = re.compile(r"[ \t]*(?:async[ \t]+)?(?:def|cpdef|cdef)\b[^=(]*\(")
_OURS = re.compile(r"(?<![\w.])(?:at|torch)\.[\w.]+[ \t]*$|\.cdata\.\w+[ \t]*$")
_TAKES_TENSORS = re.compile(r"\bat\.\w+[ \t]*$")


def hint(message: str, lines: list[str], line: int, column: int) -> str | None:
    """What to do about a message of Cython's on a place in a source, counted from 1; None where nothing is known."""
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    here = text[column - 1 :]
    if _TO_PYTHON.match(message):
        return "this is a C++ tensor, and torch.wrap(...) makes a Python object of it"
    keyword = _KEYWORD.match(message)
    if keyword and _OURS.search(_callee(lines, line, column)):
        return f"C++ functions take no keyword arguments, unless they are declared so: give {keyword[1]!r} in its place"
    declared = _declared(lines, line)
    if _FROM_PYTHON.match(message):
        name = re.match(r"\w*", here)
        if name and name[0] in declared and not here[name.end() :].startswith((".", "(", "[")):
            return _of_python(name[0])
        return "this is a Python object: of a torch.Tensor x, the C++ tensor is x.cdata; of any other, torch.unpack(x)"
    if _NO_OVERLOAD.match(message) and _TAKES_TENSORS.search(text[: column - 1]):
        given = [name for name in re.findall(r"(?<![\w.])(\w+)(?=[ \t]*[,)\]])", here) if name in declared]
        return _of_python(given[0]) if given else None
    return None


def _callee(lines: list[str], line: int, column: int) -> str:
    """The text before the bracket that an argument stands in."""
    text = "\n".join([*lines[: line - 1], lines[line - 1][: column - 1]])
    depth = 0
    for index in range(len(text) - 1, -1, -1):
        depth += (text[index] in ")]}") - (text[index] in "([{")
        if depth < 0:
            return text[:index]
    return ""


def _declared(lines: list[str], line: int) -> set[str]:
    """The names that the function around a line declares as Python's tensors."""
    least = len(lines[line - 1]) if 0 < line <= len(lines) else 0
    for start in range(line, 0, -1):
        text = lines[start - 1]
        indent = len(text) - len(text.lstrip())
        if text.strip() and (indent < least or start == line):
            least = indent
            if _FUNCTION.match(text):
                break
    else:
        return set()
    body = re.sub(r"#.*", "", "\n".join(lines[start - 1 : line]))
    found = set(_DECLARED.findall(body))
    if {*_CIMPORTED.findall("\n".join(lines))} == {"torch"}:
        found.update(_DECLARED_SHORT.findall(body))
    return found


@contextlib.contextmanager
def hints() -> Iterator[None]:
    """While this lasts, Cython's messages have a second line with the hint, if there is one."""
    with replaced(Errors.CompileError, "__init__", _with_hint):
        yield


def _of_python(name: str) -> str:
    return f"{name} is a torch.Tensor, a Python object: C++ functions take its C++ tensor, {name}.cdata"


def _with_hint(original: Callable) -> Callable:
    def initialise(self: Errors.CompileError, position: Any = None, message: str = "") -> None:
        found = None
        with contextlib.suppress(Exception):  # a source that cannot be read; the message says so itself
            source, line, column = position[:3]
            found = hint(message, list(source.get_lines(error_handling="replace")), line, column + 1)
        original(self, position, f"{message}\n{HINT}{found}" if found else message)

    return initialise
