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
from Cython.Compiler.PyrexTypes import error_type

from interop.codegen.patch import replaced
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
    this one cannot be declared ``except +``.
    """

    def make(original):
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

        return generate_execution_code

    with replaced(InPlaceAssignmentNode, "generate_execution_code", make):
        yield


@contextlib.contextmanager
def refuse_unfit_functions() -> Iterator[None]:
    """While this lasts, Cython refuses to hand torch a function that it cannot call: above all one that needs the GIL.

    A parameter that is a template, and one of a macro, takes whatever stands there.
    """

    def make(original):
        def analyse_c_function_call(node, env):
            unfit = list(_unfit_functions(node))
            for position, message in unfit:
                error(position, message)
            if not unfit:
                original(node, env)
                return
            # Without the original, or Cython's own message would come on top.
            declared = node.function.entry.all_alternatives()
            node.type = declared[0].type.return_type if len(declared) == 1 else error_type
            node.result_code = "<error>"

        return analyse_c_function_call

    with replaced(SimpleCallNode, "analyse_c_function_call", make):
        yield


# Which arguments are functions, from which one on, and what they are called.
_TAKE_FUNCTIONS = {
    ("torch.library", "impl"): (2, "kernel"),
    ("torch.library", "register_autograd"): (1, "function of register_autograd"),
    ("torch.autograd", "define"): (1, "forward or backward function"),
    ("interop.elementwise", "kernel"): (0, "function of at.kernel"),
    ("interop.dispatch", "dispatch"): (2, "function of at.dispatch"),
    ("interop.dispatch", "dispatch2d"): (2, "function of at.dispatch2d"),
    ("interop.dispatch", "dispatch_part"): (2, "function of at.dispatch_part"),
}
# Before the last parameter, a pointer to the element.
_DISPATCHED = {
    "dispatch": "char** data, const int64_t* strides, int64_t n",
    "dispatch2d": "char** data, const int64_t* strides, int64_t n, int64_t m",
    "dispatch_part": "int64_t begin, int64_t end",
}


def _unfit_functions(node: SimpleCallNode) -> Iterator[tuple[tuple, str]]:
    """The position of each function among the arguments of a call that cannot be called, and what is wrong with it."""
    entry = getattr(node.function, "entry", None)
    if not entry or not entry.type.is_cfunction:
        return
    first, what = _TAKE_FUNCTIONS.get((_module_of(entry), entry.name), (None, "function that torch calls"))
    for index, argument in enumerate(node.args or ()):
        kind = argument.type.base_type if argument.type.is_ptr else argument.type
        if not (kind.is_cfunction or kind.is_pyobject):
            continue
        if not (index >= first if first is not None else _takes_nogil(entry, index)):
            continue
        if kind.is_pyobject:
            yield argument.pos, f"a {what} is a cdef function, and this is a Python object"
        elif not kind.nogil and not kind.with_gil:
            yield argument.pos, "torch calls this function without the GIL; declare it `nogil`, or `with gil`"
        elif first is None and _is_for_a_dtype(kind):
            yield argument.pos, f"the last parameter of a {what} is a void*{_other(kind)}"
        elif what.startswith("function of at.dispatch") and len(kind.args) != _DISPATCHED[entry.name].count(",") + 2:
            yield argument.pos, f"a {what} has the parameters ({_DISPATCHED[entry.name]}, floating* _){_other(kind)}"
        elif what == "function of at.kernel" and (kind.exception_check or kind.exception_value is not None):
            yield argument.pos, f"a {what} must be noexcept: {_noexcept(kind)}"


def _is_for_a_dtype(kind) -> bool:
    """Whether this is a specialisation among which at.dispatch chooses."""
    last = kind.args[-1].type if kind.args else None
    return last is not None and last.is_ptr and last.base_type.is_numeric and bool(_other(kind))


def _other(kind) -> str:
    """What can take a function that is for a dtype."""
    fitting = (name for name, parameters in _DISPATCHED.items() if parameters.count(",") + 2 == len(kind.args))
    return "".join(f"; for this one there is at.{name}" for name in fitting)


def _module_of(entry) -> str | None:
    """Where a function, or the class of a method, is declared."""
    scope = entry.scope
    while scope is not None and not scope.is_module_scope:
        scope = scope.outer_scope
    return scope.qualified_name if scope is not None else None


def _takes_nogil(entry, index: int) -> bool:
    """Whether the parameter at `index` is a pointer to a `nogil` function, in all declarations that are long enough."""
    kinds = [one.type.args[index].type for one in entry.all_alternatives() if index < len(one.type.args)]
    return bool(kinds) and all(kind.is_ptr and kind.base_type.is_cfunction and kind.base_type.nogil for kind in kinds)


def _noexcept(kind) -> str:
    """How a function of this type would be declared."""
    name = kind.entry.name if kind.entry else "f"
    parameters = ", ".join(f"{argument.type} {argument.name}" for argument in kind.args)
    return f"cdef {kind.return_type} {name}({parameters}) noexcept nogil"


_IN_PLACE = {
    "+": "add_",
    "-": "sub_",
    "*": "mul_",
    "/": "div_",
    "&": "bitwise_and_",
    "|": "bitwise_or_",
    "^": "bitwise_xor_",
}
