"""Add hints to Cython's messages about tensors: what to write instead.

A hint depends on the tokens around an error, because Cython reports many errors before it has a tree with types.
"""

import contextlib
import functools
import io
import keyword
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from interop.cython.declared_names import OURS, absent_in_stable, module_of_ours, names_in, names_of_methods, nearest
from interop.cython.diagnostics import DIVISION, GIL
from interop.cython.patches import Patch, applied
from interop.paths import get_pxd_dir

__all__ = ["HINT", "hint", "hints"]

HINT = "hint: "
"""The start of a line with a hint."""

_TO_PYTHON = re.compile(r"Cannot convert '(?:const )?(?:at\.)?Tensor(?: ?&)?' to Python object")
_TUPLE = re.compile(r"Constructing Python tuple not allowed without gil")
_COERCED = re.compile(r"Coercion from Python not allowed without the GIL")
_FROM_PYTHON = re.compile(r"Cannot convert Python object (?:argument )?to (?:type )?'(?:const )?C?Tensor\b[^']*'")
_CONVERTED = re.compile(r"Converting to Python object not allowed without gil")
_NO_OVERLOAD = re.compile(r"no suitable method found")
_WRONG_CALL = re.compile(rf"no suitable method found|Call with wrong number of arguments|{_CONVERTED.pattern}")
_TOO_MANY = re.compile(r"function call got too many positional arguments, expected 0")
_BY_KEYWORD = re.compile(r"[(,]\s*(\w+)\s*=(?!=)")
_SYM_INT, _SYM_FLOAT = (rf"(?:const )?{name}(?: ?&)?" for name in ("SymInt", "SymFloat"))
_BETWEEN = r"Invalid (?:operand )?types for '(?:[-+*/]|[<>]=?|[=!]=)'"
_SYMBOLIC = re.compile(rf"Cannot assign type '{_SYM_INT}' to 'b?int")
_SYMBOL_TO_PYTHON = re.compile(rf"Cannot convert '{_SYM_INT}' to Python object")
_CHOSEN = re.compile(r"(?:Invalid types for '[<>]'|Incompatible types in conditional expression) \(.*SymInt")
_BUILTIN = re.compile(r"(?<![\w.])(min|max)\s*$")
_TEXT = re.compile(r"a str does not become a C string|Unicode objects only support coercion")
_DECLARATION = re.compile(r' +(\S.*? (\w+))(?: "[^"]+")?((?:\[[\w, ]+\])?\(.*\)) except ')
_SHOWN = 4
"""The maximum number of declarations in a hint."""
_NUMBER = re.compile(r"(?:CScalar&|(?:double|float) complex|double|int(?:64_t)?|cbool|SymInt|SymFloat|object)(?= \w)")
"""The types for which a function with a Scalar is declared, each in turn."""
_INCLUDE = re.compile(r'^#include ["<]([^">]+)', re.MULTILINE)
_REPLACES_CHECK = "interop/callback.h"
"""The header that replaces Cython's exception check, unless Py_LIMITED_API is defined."""
_KEYWORD = re.compile(r"C function got unexpected keyword argument '(\w+)'")
_NOT_CALLED = re.compile(r"Cannot convert '[^']*\([^']*' to Python object")
_NO_ATTRIBUTE = re.compile(r"Object of type '(?:const )?Tensor(?: ?&)?' has no attribute '(\w+)'")
_UNDECLARED = re.compile(r"(?:undeclared name not builtin: (\w+)|'(\w+)' is not declared)$")
_NOT_CIMPORTED = re.compile(r"'(\w+)' is not a cimported module")
_NOT_IN_PACKAGE = re.compile(rf"'(({'|'.join(OURS)})/(?:\w+/)*(\w+))\.pxd' not found")
_NO_PXD = re.compile(r"'(aten|torch\.aten|at|Aten|Torch|pytorch)(?:\.\w+)*\.pxd' not found")
_PATH = r"(?<![\w.])(\w+(?: *\. *\w+)*) *"
_DECLARED = re.compile(rf"(?!(?:cp?def|const)\b){_PATH}(?<= )(?:& )?(\w+)")
_CALLED = re.compile(f"{_PATH}$")
_TENSOR_METHOD = re.compile(r"(\w+) *\. *(\w+) *$")
_LIST = re.compile(rf"{_PATH}\([^()]*\[[^\[\]]*$")
_IN_LIST = re.compile(r"[\w)]\s*\((?:[^()]*,)?\s*\[(?:[^()\[\]]|\([^()]*\))*$")
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
            r"(?:(?:Cannot convert|Cannot assign type|Indexing) '|missing begin\(\) on )tuple\d\[",
            "get the results one by one with get0(r), get1(r) and so on, after: from interop cimport get0, get1",
        ),
        (
            r"Operator templated type receives 1 arguments|Indexing 'Operator\[R\]' not supported",
            "the type of several results is tuple2 to tuple7: write Operator[tuple2[at.Tensor, at.Tensor]], "
            "after: from interop cimport tuple2",
        ),
        (
            r"Invalid operand types for '//' \(.*SymInt",
            "for an at.SymInt, write floordiv(a, b), after: from interop cimport floordiv",
        ),
        (
            r"Invalid operand types for '%' \(.*SymInt",
            "for an at.SymInt, write mod(a, b), after: from interop cimport mod",
        ),
        (
            rf"Invalid operand types for '\*\*' \({_SYM_INT}[;,]",
            "C++ has no operator ** for an at.SymInt: write n * n for n ** 2",
        ),
        (
            rf"Invalid operand types for '\*\*' \({_SYM_FLOAT}[;,]",
            "C++ has no operator ** for an at.SymFloat: write f.sqrt() for f ** 0.5, and f * f for f ** 2",
        ),
        (
            r"Invalid types for '[=!]=' \(SymIntArrayRef, SymIntArrayRef\)",
            "to compare sizes, write x.sym_sizes().equals(y.sym_sizes())",
        ),
        (
            rf"{_BETWEEN} \((?:{_SYM_INT}[;,] {_SYM_FLOAT}|{_SYM_FLOAT}[;,] {_SYM_INT})\)",
            "write 1.0 * n, which is an at.SymFloat, for the at.SymInt",
        ),
        (
            rf"Cannot assign type 'double' to 'const SymInt'|Cannot assign type '{_SYM_FLOAT}' to 'int",
            "to compare an at.SymInt with a float, write 1.0 * n, which is an at.SymFloat",
        ),
        (
            rf"{_BETWEEN} \([^;,]+[;,] {_SYM_FLOAT}\)",
            "an at.SymFloat is the left operand, as in C++: write f * 2.0 and f > 0.5, or at.SymFloat(2.0) - f",
        ),
        (
            rf"Type '{_SYM_INT}' not acceptable as a boolean|Invalid operand type for '!' \(.*SymInt",
            "for the truth value of an at.SymInt, write n != 0",
        ),
        (
            r"Cannot assign type '(?:int|long)' to 'const SymInt'",
            "make an at.SymInt of the number: v.push_back(at.SymInt(3))",
        ),
        (
            rf"Cannot assign type '{_SYM_INT}' to '(?:double|float)",
            "for a float, write 1.0 * n, which is an at.SymFloat",
        ),
        (
            rf"Cannot convert '{_SYM_INT}' to Python object|Cannot assign type '{_SYM_INT}' to 'Py_ssize_t",
            "a loop and Python need a number, which an at.SymInt need not be; x.size(0) is one in kernels that are not "
            "traced",
        ),
        (f".*{DIVISION[0]}", DIVISION[1]),
        (
            r"'torch/stable(?:/\w+)?\.pxd' not found",
            "torch.stable is for modules built with stable='2.11', which names the oldest torch that they run with",
        ),
        (r"Cannot assign None to (?:const )?Tensor", "for an undefined C++ tensor, write at.Tensor()"),
        (r".*\b(?:const_)?row\d\[\w+\]", "an accessor takes one index at a time: write a[i][j]"),
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


class _Code:
    """A source by its tokens: with spaces in place of comments and strings, and the names that it cimports."""

    def __init__(self, text: str):
        self.lines = text.split("\n")  # as tokenize and Cython count them: a form feed ends no line
        self.statements: list[tuple[int, list[tokenize.TokenInfo]]] = []  # with their indentation
        # `at` and `torch` are the names of the documentation.
        self.cimported = {"at": "ATen", "torch": "torch"}
        self.has_aten = False
        depth = 0
        statement: list[tokenize.TokenInfo] = []
        with contextlib.suppress(SyntaxError, tokenize.TokenError):  # keep the tokens before the error
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                kind = tokenize.tok_name[token.type]
                if kind in ("COMMENT", "STRING", "FSTRING_MIDDLE", "TSTRING_MIDDLE"):
                    self._blank(token)
                depth += (kind == "INDENT") - (kind == "DEDENT")
                if kind == "NEWLINE":
                    self.statements.append((depth, statement))
                    statement = []
                elif kind in ("NAME", "OP", "NUMBER", "ERRORTOKEN"):
                    statement.append(token)
        if statement:
            self.statements.append((depth, statement))
        for _, tokens in self.statements:
            for part in " ".join(token.string for token in tokens).split(" ; "):
                self._cimport(part.split())

    def _blank(self, token: tokenize.TokenInfo) -> None:
        (first, begin), (last, end) = token.start, token.end
        for row in range(first, last + 1):
            line = self.lines[row - 1]
            start, stop = begin if row == first else 0, end if row == last else len(line)
            self.lines[row - 1] = line[:start] + " " * (stop - start) + line[stop:]

    def _cimport(self, words: list[str]) -> None:
        module, what, listed = _partition(words, "cimport")
        if not what or module[:1] not in ([], ["from"]):
            return
        prefix = "".join(module[1:]) + "." if module else ""
        for one in " ".join(word for word in listed if word not in ("(", ")")).split(","):
            path, alias, name = _partition(one.split(), "as")
            dotted = "".join(path)
            self.has_aten |= f"{prefix}{dotted}.".startswith("ATen.")
            if alias:
                self.cimported["".join(name)] = prefix + dotted
            else:
                bound = dotted.partition(".")[0]
                self.cimported[bound] = prefix + bound

    def meaning(self, path: str) -> str:
        """The full name of a dotted name that begins with a cimported name; empty for any other."""
        first, dot, rest = path.replace(" ", "").partition(".")
        return self.cimported[first] + dot + rest if first in self.cimported else ""

    def split(self, line: int, column: int) -> tuple[str, str]:
        """The statement at a position, before and after the position, each as one line."""
        first = last = line
        for _, tokens in self.statements:
            if tokens and tokens[0].start[0] <= line <= tokens[-1].end[0]:
                first, last = tokens[0].start[0], tokens[-1].end[0]
        lines = [re.sub(r"\\$", " ", one) for one in self.lines[first - 1 : last]]
        at = sum(len(one) + 1 for one in lines[: line - first]) + column - 1
        text = " ".join(lines)
        return text[:at], text[at:]

    def declared(self, line: int, kind: str) -> set[str]:
        """The names that the function around a line declares with a type, such as torch.Tensor."""
        around: list[tuple[int, set[str]]] = [(-1, set())]  # the functions: their indentation and those names
        for depth, tokens in self.statements:
            if tokens and tokens[0].start[0] > line:
                break
            while around[-1][0] >= depth:
                around.pop()
            words = [token.string for token in tokens if token.start[0] <= line]
            if _is_function(words):
                around.append((depth, set()))
            for path, name in re.findall(_DECLARED, " ".join(words)):
                if self.meaning(path) == kind and not keyword.iskeyword(name):
                    around[-1][1].add(name)
        return around[-1][1] if len(around) > 1 else set()


@functools.lru_cache(maxsize=2)
def _read(text: str) -> _Code:
    return _Code(text)


def _partition(words: Sequence[str], word: str) -> tuple[list[str], list[str], list[str]]:
    at = words.index(word) if word in words else len(words)
    return list(words[:at]), list(words[at : at + 1]), list(words[at + 1 :])


def _is_function(words: list[str]) -> bool:
    head = _partition(words, "(")[0]
    return head[:1] in (["def"], ["cdef"], ["cpdef"], ["async"]) and not {"=", "class", "with", "for"} & {*head}


def hint(message: str, lines: Sequence[str], line: int, column: int) -> str | None:
    """The hint for a message of Cython about a position in a source, counted from 1; None if there is none."""
    code = _read("".join(one.rstrip("\r\n") + "\n" for one in lines))
    before, here = code.split(line, column)
    declared = code.declared(line, "torch.Tensor")
    name = re.split(r"\W", here, maxsplit=1)[0]
    is_python_tensor = name in declared and not here[len(name) :].startswith((".", "(", "["))
    if is_python_tensor and _COERCED.match(message):
        return _of_python(name)
    if _TUPLE.match(message) and here.startswith("()"):
        return "an empty tuple is a Python object: write dims(), after: from interop cimport dims"
    if _SYMBOL_TO_PYTHON.match(message) and _IN_LIST.search(before):
        return "a list is a Python object: write a tuple, at.empty_symint((n, 2))"
    found = next((instead for pattern, instead in _INSTEAD if pattern.match(message)), None)
    if found:
        return found
    found = _of_symbol(message, before, code, line)
    if found:
        return found
    by_keyword = _BY_KEYWORD.search(here)
    if _TOO_MANY.match(message) and before.rstrip().endswith(".call") and by_keyword:
        return f"call() takes no keyword arguments: pass {by_keyword[1]!r} by position, in the order of the schema"
    around = _CALLED.search(_callee(before))
    function = code.meaning(around[1]) if around else ""
    if function.startswith("interop.check") and "'SymBool' to 'bool'" in message:
        return "check(), check_index() and check_value() take a symbolic condition, alone: write a check for each"
    if function.startswith("interop.check") and (_TEXT.match(message) or GIL.match(message)):
        name = function.rpartition(".")[2]
        return f'{name}() joins the parts of a message: write {name}(n > 0, b"n must be positive, got ", n)'
    if _CONVERTED.match(message) and (function.startswith("ATen.") or _method(code, _callee(before), line)):
        return None  # `_declarations` has it
    if GIL.match(message):
        return "this needs the GIL: move it out of the `with nogil` block, or put it into a `with gil` block"
    if _TO_PYTHON.match(message):
        return _of_use(code, before, here) or "this is a C++ tensor; torch.wrap(...) makes a Python object from it"
    unexpected = _KEYWORD.match(message)
    if unexpected and _is_ours(code, _callee(before), line):
        return f"most C++ functions take no keyword arguments: pass {unexpected[1]!r} by position"
    if _FROM_PYTHON.match(message):
        if re.match(r"[ \t]*(?:async[ \t]+)?(?:def|cpdef)\b", before + here) and "argument to type" in message:
            return "declare the parameter as torch.Tensor x, after `cimport torch`; its C++ tensor is x.cdata"
        if is_python_tensor:
            return _of_python(name)
        python = (
            "this is a Python object: its C++ tensor is x.cdata for a torch.Tensor x, torch.unpack(x) for any other"
        )
        return _of_use(code, before, here) or python
    called = _CALLED.search(before)
    if message == "ambiguous overloaded method" and called and code.meaning(called[1]).startswith("ATen."):
        return "several declarations are as close: cast a number, such as an int32_t, to <int>, <int64_t> or <double>"
    if _NO_OVERLOAD.match(message) and called and code.meaning(called[1]).startswith("ATen."):
        given = [name for name in re.findall(r"(?<![\w.])(\w+)(?=[ \t]*[,)\]])", here) if name in declared]
        return _of_python(given[0]) if given else None
    return _of_name(message, here, code)


def _is_ours(code: _Code, callee: str, line: int) -> bool:
    called = _CALLED.search(callee)
    of_ours = called is not None and code.meaning(called[1]).partition(".")[0] in OURS
    return of_ours or _method(code, callee, line) is not None


def _method(code: _Code, callee: str, line: int) -> str | None:
    """The name of a called method of a C++ tensor."""
    method = _TENSOR_METHOD.search(callee)
    return method[2] if method and (method[1] == "cdata" or method[1] in code.declared(line, "ATen.Tensor")) else None


def _of_symbol(message: str, before: str, code: _Code, line: int) -> str | None:
    """The hint for an at.SymInt that is used as a number."""
    chosen = _BUILTIN.search(before) or _BUILTIN.search(_callee(before))
    if _CHOSEN.match(message):
        if chosen:
            return f"{chosen[1]}() of an at.SymInt is its method: write n.{chosen[1]}(1)"
        return "both values of a conditional expression must be an at.SymInt: write at.SymInt(1)"
    if not _SYMBOLIC.match(message):
        return None
    callee = _callee(before)
    called, method = _CALLED.search(callee), _method(code, callee, line)
    package, _, name = code.meaning(called[1]).rpartition(".") if called else ("", "", "")
    if method and f"{method}_symint" in names_of_methods(get_pxd_dir()):
        return f"for an at.SymInt, write x.{method}_symint(...)"
    if package == "ATen" and f"{name}_symint" in names_in(get_pxd_dir(), "interop.functions"):
        return f"for an at.SymInt, write at.{name}_symint(...)"
    if method or package == "ATen":
        return (
            f"{method or name}() takes a number, which an at.SymInt need not be: x.size(0) is one in kernels that are "
            'not traced; n.guard_int(b"file.pyx", line) is one as well, and compiles again for each size'
        )
    if re.match(r"\s*(?:cdef\b(?!\s+bint\b)[^=(]*|\w+\s*)=\s*[\w.]*$", before):
        return "declare the variable as an at.SymInt, which may be symbolic"
    return None


def _declarations(message: str, lines: Sequence[str], line: int, column: int, pxd: Path) -> str | None:
    """The declarations of a called function, for a message that none of them accepts the arguments."""
    if not _WRONG_CALL.match(message):
        return None
    code = _read("".join(one.rstrip("\r\n") + "\n" for one in lines))
    before, _ = code.split(line, column)
    if _CONVERTED.match(message):  # it is about an argument
        before = _callee(before)
    called, method = _CALLED.search(before), _method(code, before, line)
    package, _, name = code.meaning(called[1]).rpartition(".") if called else ("", "", "")
    if method:
        path, name = pxd / "ATen" / "core" / "TensorBody.pxd", method
    elif package == "ATen":
        path = pxd / "interop" / "functions.pxd"
    else:
        return None
    found = [
        one.expand(r"\1\3") for one in map(_DECLARATION.match, path.read_text().splitlines()) if one and one[2] == name
    ]
    first: dict[str, str] = {}  # of those that differ only in types of numbers
    for one in found:
        first.setdefault(_NUMBER.sub("", one), one)
    found = list(first.values())
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    why = "no overload takes this argument; " if _CONVERTED.match(message) else ""
    return f"{why}the declarations are {'; '.join(found[:_SHOWN])}{more}" if found else None


def _of_use(code: _Code, before: str, here: str) -> str | None:
    """The hint for a C++ tensor that Cython has converted to a Python object, because C++ lacks the operation."""
    if _MATMUL.search(before + here):
        return "C++ has no operator @: write at.matmul(a, b) with C++ tensors a and b"
    if _SLICED.match(here):
        return (
            "C++ tensors have no slices: write x[0:2] as x.index(indices(at.Slice(0, 2))), "
            "after: from interop cimport indices"
        )
    listed = _LIST.search(before)
    if listed and code.meaning(listed[1]).startswith("ATen."):
        return "write a list of C++ tensors as tensors(a, b), after: from interop cimport tensors"
    return None


def _of_python_tensor(name: str) -> str | None:
    import torch  # only here, because it would double the time of a translation on the command line

    return f"Python's tensors have {name!r}: torch.wrap(x).{name}" if hasattr(torch.Tensor, name) else None


def _of_name(message: str, here: str, code: _Code) -> str | None:
    """The hint for a name that C++ does not have, or that was not cimported."""
    if _NOT_CALLED.match(message):
        name = re.sub(r"\W*(\w*).*", r"\1", here)
        return _attribute(name) or f"this is a C++ function; call it: {name}()"
    lacking = _NO_ATTRIBUTE.match(message)
    if lacking:
        return _attribute(lacking[1]) or _of_python_tensor(lacking[1])
    elsewhere = _NOT_IN_PACKAGE.match(message)
    if _NO_PXD.match(message) or (elsewhere and elsewhere[3].lower() in ("at", "aten")):
        return "the packages are called ATen and torch: cimport ATen as at"
    if elsewhere:
        path, package, name = elsewhere.groups()
        parent = path.rpartition("/")[0]
        files = (Path(get_pxd_dir(), f"{one}.pxd") for one in (parent, f"{parent}/__init__"))
        is_declared = any(map(Path.exists, files)) and name in names_in(get_pxd_dir(), parent.replace("/", "."))
        if is_declared or Path(get_pxd_dir(), f"{path}.pxd").exists():
            return absent_in_stable(path.replace("/", "."))
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
    return _of_ours(name) if name and code.has_aten else None


def _of_ours(name: str) -> str | None:
    module = module_of_ours(name, get_pxd_dir())
    return f"write at the top: from {module} cimport {name}" if module else None


def _near(package: str, name: str) -> str | None:
    path = Path(get_pxd_dir(), package, "__init__.pxd")
    near = nearest(name, names_in(get_pxd_dir(), package)) if path.exists() else None
    return f"did you mean: from {package} cimport {near}" if near else None


def _attribute(name: str) -> str | None:
    return f"in C++, {name} is {_ATTRIBUTES[name]}" if name in _ATTRIBUTES else None


def _callee(before: str) -> str:
    """The text before the opening bracket around an argument."""
    depth = 0
    for index in range(len(before) - 1, -1, -1):
        depth += (before[index] in ")]}") - (before[index] in "([{")
        if depth < 0:
            return before[:index]
    return ""


@contextlib.contextmanager
def hints(pxd: Path, include: Sequence[str] = ()) -> Iterator[None]:
    """In this context, Cython's messages have a second line with the hint, if there is one.

    The folder `pxd` has the declarations of ATen's functions that the source can use.

    `include` lists the folders with our headers, in the order of their search. The context also drops Cython's warning
    that an exception check takes the GIL, for a module with the header that replaces this check. If the C++ may be
    compiled with Py_LIMITED_API, the header replaces nothing: then give no folders.
    """
    with_hint = Patch("Errors:CompileError.__init__", functools.partial(_with_hint, pxd), _NO_HINTS)
    with applied([with_hint, _no_warning(include)]):
        yield


def _without_ours(include: Sequence[str], original: Callable[..., None]) -> Callable[..., None]:
    @functools.cache
    def replaces_check(header: str) -> bool:
        path = next(filter(Path.is_file, (Path(folder, header) for folder in include)), None)
        if path is None or header == _REPLACES_CHECK:
            return path is not None
        return any_replaces_check(path.read_text(encoding="utf-8", errors="replace"))

    def any_replaces_check(text: str) -> bool:
        return any(map(replaces_check, _INCLUDE.findall(text)))

    def write(position: Any, env: Any, *arguments: Any, **options: Any) -> None:
        # The C++ has the headers of all modules that are cimported, directly or not.
        included = "\n".join(map(str, _includes(env.global_scope().context.modules)))
        if not any_replaces_check(included):
            original(position, env, *arguments, **options)

    return write


def _includes(modules: Mapping[str, Any]) -> Iterator[Any]:
    """The includes of Cython's `modules` and their submodules: each is a line of C++, or a number for other code."""
    for scope in modules.values():
        yield from getattr(scope, "c_includes", ())  # without these names, the warning stays
        yield from _includes(getattr(scope, "module_entries", {}))


def _of_python(name: str) -> str:
    return f"{name} is a torch.Tensor, a Python object: C++ functions take its C++ tensor, {name}.cdata"


def _with_hint(pxd: Path, original: Callable[..., None]) -> Callable[..., None]:
    def initialise(self: Any, position: Any = None, message: str = "") -> None:
        found = None
        with contextlib.suppress(Exception):  # a source that cannot be read; the message says so itself
            source, line, column = position[:3]
            lines = source.get_lines(error_handling="replace")
            found = hint(message, lines, line, column + 1) or _declarations(message, lines, line, column + 1, pxd)
        original(self, position, f"{message}\n{HINT}{found}" if found else message)

    return initialise


_NO_HINTS = "messages have no hints"


def _no_warning(include: Sequence[str]) -> Patch:
    return Patch(
        "PyrexTypes:write_noexcept_performance_hint",
        functools.partial(_without_ours, include),
        without="Cython advises `noexcept`, which loses errors",
    )
