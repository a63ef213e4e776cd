"""Add hints to Cython's messages about tensors: what to write instead."""

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from Cython.Compiler import Errors, PyrexTypes

from interop.cython.declared_names import OURS, module_of_ours, names_in, nearest
from interop.cython.patches import replaced
from interop.paths import get_pxd_dir

__all__ = ["HINT", "hint", "hints"]

HINT = "hint: "
"""The start of a line with a hint."""

_TO_PYTHON = re.compile(r"Cannot convert '(?:const )?(?:at\.)?Tensor(?: ?&)?' to Python object")
_TUPLE = re.compile(r"Constructing Python tuple not allowed without gil")
_COERCED = re.compile(r"Coercion from Python not allowed without the GIL")
_FROM_PYTHON = re.compile(r"Cannot convert Python object (?:argument )?to (?:type )?'(?:const )?C?Tensor\b[^']*'")
_NO_OVERLOAD = re.compile(r"no suitable method found")
_KEYWORD = re.compile(r"C function got unexpected keyword argument '(\w+)'")
_NOT_CALLED = re.compile(r"Cannot convert '[^']*\([^']*' to Python object")
_NO_ATTRIBUTE = re.compile(r"Object of type '(?:const )?Tensor(?: ?&)?' has no attribute '(\w+)'")
_UNDECLARED = re.compile(r"(?:undeclared name not builtin: (\w+)|'(\w+)' is not declared)$")
_NOT_CIMPORTED = re.compile(r"'(\w+)' is not a cimported module")
_NOT_IN_PACKAGE = re.compile(rf"'(({'|'.join(OURS)})/(?:\w+/)*(\w+))\.pxd' not found")
_NO_PXD = re.compile(r"'(aten|torch\.aten|at|Aten|Torch|pytorch)(?:\.\w+)*\.pxd' not found")
# Declarations of Python tensors. `at.Tensor x` declares a C++ tensor; the cimport of `Tensor` decides about `Tensor x`.
_DECLARED = re.compile(r"(?<![\w.])torch[ \t]*\.[ \t]*Tensor[ \t]+(\w+)")
_DECLARED_SHORT = re.compile(r"(?<![\w.])Tensor[ \t]+(\w+)")
_CIMPORTS_ATEN = re.compile(r"^[ \t]*cimport[ \t]+ATen\b", re.M)
_CIMPORTED = re.compile(
    r"^[ \t]*from[ \t]+([\w.]+)[ \t]+cimport\b(?:[^\n#(]*|[ \t]*\([^)]*)\bTensor\b(?!\s+as\b)", re.M
)
_FUNCTION = re.compile(r"[ \t]*(?:async[ \t]+)?(?:def|cpdef|cdef)\b[^=(]*\(")
_OURS = re.compile(r"(?<![\w.])(?:at|torch)\.[\w.]+[ \t]*$|\.cdata\.\w+[ \t]*$")
_TAKES_TENSORS = re.compile(r"\bat\.\w+[ \t]*$")
_LIST_OF_TENSORS = re.compile(r"\bat\.\w+[ \t]*\([^()]*\[[^\[\]]*$")
_MATMUL = re.compile(r"[\w)\]][ \t]*@[ \t]*[\w(]")
_SLICED = re.compile(r"[\w.]*\[[^\[\]]*:[^\[\]]*\]")

# Cython's messages about C++ tensors that are used like Python's, and what to write in C++ instead.
_INSTEAD = [
    (re.compile(message), instead)
    for message, instead in (
        (r"Invalid operand types for '\*\*' \(.*Tensor", "C++ has no operator **: write at.pow(a, b)"),
        (r"Invalid operand types for '//' \(.*Tensor", "C++ has no operator //: write at.floor_divide(a, b)"),
        (r"Invalid operand types for '%' \(.*Tensor", "C++ tensors have no operator %: write at.remainder(a, b)"),
        (r"Invalid operand types for '@' \(.*Tensor", "C++ has no operator @: write at.matmul(a, b)"),
        (
            r"Indexing '(?:const )?Tensor(?: ?&)?' not supported",
            "pass the indices to index(): x.index(indices(0, at.Slice(1, 3))), after: from interop cimport indices",
        ),
        (
            r"Can't set non-reference result '(?:const )?Tensor'",
            "write x[0] = value as x.index_put_(indices(0), value), after: from interop cimport indices",
        ),
        (
            r"missing begin\(\) on Tensor",
            "a loop cannot iterate over a C++ tensor: use x.select(0, i) for i in range(x.size(0))",
        ),
        (
            r"Type '(?:const )?Tensor(?: ?&)?' not acceptable as a boolean",
            "for the truth value of an element, write x.is_nonzero()",
        ),
        (
            r"Cannot assign type '(?:const )?Tensor(?: ?&)?' to 'b?(?:float|double|int|long|char)",
            "for the value of an element, write x.item[double]()",
        ),
        (
            r"Cannot convert '(?:at\.)?Scalar' to Python object",
            "for a Scalar's number, write s.to[double](); for an element of a tensor, x.item[double]()",
        ),
        (
            r"(?:Cannot convert|Indexing) 'tuple\d\[",
            "get the results one by one with get0(r), get1(r) and so on, after: from interop cimport get0, get1",
        ),
        (
            r"'torch/stable(?:/\w+)?\.pxd' not found",
            "torch.stable is for modules built with stable='2.11', which names the oldest torch that they run with",
        ),
        (r"Cannot assign None to (?:const )?Tensor", "for an undefined C++ tensor, write at.Tensor()"),
        (r".*\b(?:const_)?row\d\[\w+\]", "an accessor takes one index at a time: write a[i][j]"),
        (
            r".* not allowed without (?:the )?(?:gil|GIL)$",
            "this needs the GIL: move it out of the `with nogil` block, or put it into a `with gil` block",
        ),
        (
            r"Compiler crash in (?s:.*)_spanning_type\b(?s:.*)has no attribute 'is_numeric'",
            "Cython finds no type for a variable of this function that gets a number and a C++ value: declare it, such "
            "as cdef double s; for the value of an element, write x.item[double]()",
        ),
    )
]
_PACKAGES = {"at": "ATen as at", "torch": "torch"}
_ATTRIBUTES = {
    "shape": "x.sizes(), or torch.wrap_size(x.sizes()) for Python",
    "dtype": "x.scalar_type(), or torch.wrap_dtype(x.scalar_type()) for Python",
    "device": "x.device(), or torch.wrap_device(x.device()) for Python",
    "layout": "x.layout(), or torch.wrap_layout(x.layout()) for Python",
    "ndim": "x.dim()",
    "T": "x.t()",
}


def hint(message: str, lines: list[str], line: int, column: int) -> str | None:
    """The hint for a message of Cython about a position in a source, counted from 1; None if there is none."""
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    here = text[column - 1 :]
    declared = _declared(lines, line)
    name = re.split(r"\W", here, maxsplit=1)[0]
    is_python_tensor = name in declared and not here[len(name) :].startswith((".", "(", "["))
    if is_python_tensor and _COERCED.match(message):
        return _of_python(name)
    if _TUPLE.match(message) and here.startswith("()"):
        return "an empty tuple is a Python object: write dims(), after: from interop cimport dims"
    found = next((instead for pattern, instead in _INSTEAD if pattern.match(message)), None)
    if found:
        return found
    if _TO_PYTHON.match(message):
        return _of_use(text, column) or "this is a C++ tensor; torch.wrap(...) makes a Python object from it"
    keyword = _KEYWORD.match(message)
    if keyword and _OURS.search(_callee(lines, line, column)):
        return f"most C++ functions take no keyword arguments: pass {keyword[1]!r} by position"
    if _FROM_PYTHON.match(message):
        if re.match(r"[ \t]*(?:async[ \t]+)?(?:def|cpdef)\b", text) and "argument to type" in message:
            return "declare the parameter as torch.Tensor x, after `cimport torch`; its C++ tensor is x.cdata"
        if is_python_tensor:
            return _of_python(name)
        python = (
            "this is a Python object: its C++ tensor is x.cdata for a torch.Tensor x, torch.unpack(x) for any other"
        )
        return _of_use(text, column) or python
    if _NO_OVERLOAD.match(message) and _TAKES_TENSORS.search(text[: column - 1]):
        given = [name for name in re.findall(r"(?<![\w.])(\w+)(?=[ \t]*[,)\]])", here) if name in declared]
        return _of_python(given[0]) if given else None
    return _of_name(message, here, lines)


def _of_use(text: str, column: int) -> str | None:
    """The hint for a C++ tensor that Cython has converted to a Python object, because C++ lacks the operation."""
    if _MATMUL.search(text.partition("#")[0]):
        return "C++ has no operator @: write at.matmul(a, b) with C++ tensors a and b"
    if _SLICED.match(text, column - 1):
        return (
            "C++ tensors have no slices: write x[0:2] as x.index(indices(at.Slice(0, 2))), "
            "after: from interop cimport indices"
        )
    if _LIST_OF_TENSORS.search(text[: column - 1]):
        return "write a list of C++ tensors as tensors(a, b), after: from interop cimport tensors"
    return None


def _of_python_tensor(name: str) -> str | None:
    import torch  # only here, because it would double the time of a translation on the command line

    return f"Python's tensors have {name!r}: torch.wrap(x).{name}" if hasattr(torch.Tensor, name) else None


def _of_name(message: str, here: str, lines: list[str]) -> str | None:
    """The hint for a name that C++ does not have, or that was not cimported."""
    if _NOT_CALLED.match(message):
        name = re.sub(r"\W*(\w*).*", r"\1", here)
        return _attribute(name) or f"this is a C++ function; call it: {name}()"
    lacking = _NO_ATTRIBUTE.match(message)
    if lacking:
        return _attribute(lacking[1]) or _of_python_tensor(lacking[1])
    if _NO_PXD.match(message):
        return "the packages are called ATen and torch: cimport ATen as at"
    elsewhere = _NOT_IN_PACKAGE.match(message)
    if elsewhere:
        path, package, name = elsewhere.groups()
        parent = path.rpartition("/")[0]
        files = (Path(get_pxd_dir(), f"{one}.pxd") for one in (parent, f"{parent}/__init__"))
        is_declared = any(map(Path.exists, files)) and name in names_in(get_pxd_dir(), parent.replace("/", "."))
        if is_declared or Path(get_pxd_dir(), f"{path}.pxd").exists():
            return f"modules for many releases of torch have no {path.replace('/', '.')}: build this one without stable"
        if name in names_in(get_pxd_dir(), "ATen"):
            return f"write at.{name}, after: cimport ATen as at"
        return _of_ours(name) or _near(package, name)
    not_cimported = _NOT_CIMPORTED.match(message)
    if not_cimported and not_cimported[1] in _PACKAGES:
        return f"`import` gives only Python's module; write also: cimport {_PACKAGES[not_cimported[1]]}"
    missing = _UNDECLARED.match(message)
    name = (missing[1] or missing[2]) if missing else ""
    if name in _PACKAGES:
        return f"write at the top: cimport {_PACKAGES[name]}" if here.startswith(f"{name}.") else None
    return _of_ours(name) if name and _CIMPORTS_ATEN.search("\n".join(lines)) else None


def _of_ours(name: str) -> str | None:
    module = module_of_ours(name, get_pxd_dir())
    return f"write at the top: from {module} cimport {name}" if module else None


def _near(package: str, name: str) -> str | None:
    path = Path(get_pxd_dir(), package, "__init__.pxd")
    near = nearest(name, names_in(get_pxd_dir(), package)) if path.exists() else None
    return f"did you mean: from {package} cimport {near}" if near else None


def _attribute(name: str) -> str | None:
    return f"in C++, {name} is {_ATTRIBUTES[name]}" if name in _ATTRIBUTES else None


def _callee(lines: list[str], line: int, column: int) -> str:
    """The text before the opening bracket around an argument."""
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
    """In this context, Cython's messages have a second line with the hint, if there is one.

    The context also drops Cython's warning that an exception check takes the GIL, if our headers do not take it.
    """
    with (
        replaced(Errors.CompileError, "__init__", _with_hint),
        replaced(PyrexTypes, "write_noexcept_performance_hint", _without_ours),
    ):
        yield


def _without_ours(original: Callable) -> Callable:
    def write(position: Any, env: Any, *arguments: Any, **options: Any) -> None:
        # All our declarations include interop/callback.h. With it, Cython's advice, `noexcept`, would lose errors.
        if "interop" not in env.global_scope().context.modules:
            original(position, env, *arguments, **options)

    return write


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
