"""Refuses, before Cython translates it, what Cython or C++ would get wrong or explain badly."""

import contextlib
import difflib
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from Cython.Compiler.Errors import error
from Cython.Compiler.ExprNodes import SimpleCallNode
from Cython.Compiler.Nodes import InPlaceAssignmentNode

from interop.codegen.select import read_source

_NAME = re.compile(r"[A-Za-z_]\w*")
# Of a .pxd, what declares no name: comments, C++ names, and the parameters of functions.
_NO_NAMES = re.compile(r"#.*|\"[^\"]*\"|\([^()]*\)")
_CIMPORT = re.compile(r"^[ \t]*cimport[ \t]+(ATen|torch)(?:[ \t]+as[ \t]+(\w+))?[ \t]*(?:#.*)?$", re.MULTILINE)


def refuse_unknown_names(source: str, pxd: str) -> None:
    """Raises SyntaxError for a name of ATen or torch that there is not, with the nearest name that there is.

    With the directive nonecheck, Cython's own message for it is followed by a crash of the compiler.
    """
    text = read_source(source)
    for package, alias in _CIMPORT.findall(text):
        alias = alias or package
        if re.search(rf"^[ \t]*import[ \t]+(?:[\w. ,]*,[ \t]*)?{alias}\b(?![ \t]+as)", text, re.MULTILINE):
            continue  # what is not declared is looked up in Python's module
        known = _names_in(pxd, package)
        for name, line, (row, column) in _attributes(text, alias):
            if name not in known:
                raise SyntaxError(_explain(name, alias, package, pxd), (source, row, column + 1, line))


def _explain(name: str, alias: str, package: str, pxd: str) -> str:
    if package == "torch":
        if name in _names_in(pxd, "ATen"):
            return f"the cimported torch has no {name!r}; write at.{name}, after: cimport ATen as at"
        return f"the cimported torch has no {name!r}; for Python's, write: import torch"
    near = difflib.get_close_matches(name, _names_in(pxd, package), 1)
    return f"ATen has no {name!r}" + (f"; did you mean {alias}.{near[0]}?" if near else "")


@functools.cache
def _names_in(pxd: str, package: str) -> frozenset[str]:
    """Every name that a declaration declares: of ATen, in any file; of torch, in its own."""
    files = Path(pxd).rglob("*.pxd") if package == "ATen" else (Path(pxd) / "torch").glob("_*.pxd")
    return frozenset(name for path in files for name in _NAME.findall(_NO_NAMES.sub("", path.read_text())))


def _attributes(text: str, alias: str) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """The names after `alias` and a dot in the code of `text`: name, line, position."""
    with contextlib.suppress(tokenize.TokenError, SyntaxError):  # not for us to report: Cython will
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        for before, owner, dot, name in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
            names_a_module = before.string in (".", "from", "import", "cimport")
            if not names_a_module and (owner.string, dot.string) == (alias, ".") and name.type == tokenize.NAME:
                yield name.string, name.line, name.start


@contextlib.contextmanager
def refuse_in_place_operators() -> Iterator[None]:
    """While this lasts, Cython refuses ``t += u`` for an at.Tensor.

    It would write it into C++ as it stands, where an exception that ATen throws ends the process: of all expressions
    this one cannot be declared ``except +``. The node has no hook, so its method is replaced.
    """
    original = InPlaceAssignmentNode.generate_execution_code

    def generate_execution_code(node, code):
        kind = node.lhs.type
        if getattr(kind, "is_reference", False):
            kind = kind.ref_base_type
        if kind.is_cpp_class and kind.empty_declaration_code().strip() == "at::Tensor":
            error(
                node.pos,
                f"an exception in `{node.operator}=` of an at.Tensor would end the process; "
                f"write t = t {node.operator} u, or in place t.{_IN_PLACE.get(node.operator, '...')}(u)",
            )
        return original(node, code)

    InPlaceAssignmentNode.generate_execution_code = generate_execution_code
    try:
        yield
    finally:
        InPlaceAssignmentNode.generate_execution_code = original


@contextlib.contextmanager
def refuse_kernels_with_gil() -> Iterator[None]:
    """While this lasts, Cython refuses to register a function that needs the GIL: torch calls kernels without it.

    A parameter that is a template takes functions of any kind. The node has no hook, so its method is replaced.
    """
    original = SimpleCallNode.analyse_c_function_call

    def analyse_c_function_call(node, env):
        original(node, env)
        entry = getattr(node.function, "entry", None)
        scope = getattr(getattr(entry, "scope", None), "qualified_name", None)
        is_define = scope == "Function" and entry.name.partition("[")[0] == "define"
        if scope != "torch.library" and not is_define:
            return
        for argument in node.args or ():
            kind = argument.type.base_type if argument.type.is_ptr else argument.type
            if kind.is_cfunction and not kind.nogil and not kind.with_gil:
                error(argument.pos, "torch calls this function without the GIL; declare it `nogil`, or `with gil`")

    SimpleCallNode.analyse_c_function_call = analyse_c_function_call
    try:
        yield
    finally:
        SimpleCallNode.analyse_c_function_call = original


_IN_PLACE = {
    "+": "add_",
    "-": "sub_",
    "*": "mul_",
    "/": "div_",
    "&": "bitwise_and_",
    "|": "bitwise_or_",
    "^": "bitwise_xor_",
}
