"""Refuses, before Cython translates it, what Cython or C++ would get wrong or explain badly."""

import contextlib
import difflib
import functools
import importlib.util
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from Cython.Compiler.Errors import error
from Cython.Compiler.ExprNodes import AttributeNode, SimpleCallNode
from Cython.Compiler.Nodes import InPlaceAssignmentNode
from Cython.Compiler.PyrexTypes import error_type

from interop.cython.declarations import read_source
from interop.cython.patches import replaced

# Of a .pxd: what is neither a name that is declared nor the kind of it.
_NO_NAMES = re.compile(r"#.*|\"[^\"]*\"")
_CIMPORTED = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+cimport[ \t]+(?:\(([^)]*)\)|(.*))$", re.MULTILINE)
# In a `cdef extern` block, so that methods are further in.
_FUNCTION = re.compile(r"^[ ]{4}(?! )[^(\n]*?(\w+)[ ]*(?:\[[^\[\]]*\])?[ ]*\(", re.MULTILINE)
_KIND = re.compile(
    r"^(?:[ ]{4})?(?:ctypedef[ ]+|cdef[ ]+)?(?:cppclass|struct|union|enum(?:[ ]+class)?|class)[ ]+([\w.]+)",
    re.MULTILINE,
)
_ALIAS = re.compile(r"^[ ]*ctypedef[ ]+[^\n(]*?(\w+)[ ]*$", re.MULTILINE)
_VARIABLE = re.compile(r"^[ ]{4}(?:const[ ]+)?\w+[ ]+(\w+)[ ]*$", re.MULTILINE)
_CIMPORT = re.compile(r"^[ \t]*cimport[ \t]+(ATen|interop|torch)(?:[ \t]+as[ \t]+(\w+))?[ \t]*(?:#.*)?$", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*(?:import[ \t]+ATen\b|from[ \t]+ATen[\w.]*[ \t]+import\b).*", re.MULTILINE)
# Python's names of element types, and those of C++.
_SCALAR_TYPES = {
    "bool": "kBool",
    "uint8": "kByte",
    "int8": "kChar",
    "int16": "kShort",
    "short": "kShort",
    "int32": "kInt",
    "int": "kInt",
    "int64": "kLong",
    "long": "kLong",
    "float16": "kHalf",
    "half": "kHalf",
    "bfloat16": "kBFloat16",
    "float32": "kFloat",
    "float": "kFloat",
    "float64": "kDouble",
    "double": "kDouble",
    "complex64": "kComplexFloat",
    "cfloat": "kComplexFloat",
    "complex128": "kComplexDouble",
    "cdouble": "kComplexDouble",
}


def refuse_unknown_names(source: str, pxd: str) -> None:
    """Raises SyntaxError for a name of ATen, interop or torch that there is not, with the nearest name that there is.

    With the directive nonecheck, Cython's own message for it is followed by a crash of the compiler.
    """
    text = read_source(source)
    python = _IMPORT.search(text)
    if python and not importlib.util.find_spec("ATen"):
        line = text.count("\n", 0, python.start()) + 1
        raise SyntaxError("there is no Python module ATen; write: cimport ATen as at", (source, line, 1, python[0]))
    for package, alias in _CIMPORT.findall(text):
        alias = alias or package
        if re.search(rf"^[ \t]*import[ \t]+(?:[\w. ,]*,[ \t]*)?{alias}\b(?![ \t]+as)", text, re.MULTILINE):
            continue  # what is not declared is looked up in Python's module
        known = _names_in(pxd, package)
        for name, line, (row, column) in _attributes(text, alias):
            by_itself = alias == package and re.search(rf"\bcimport[ \t]+{package}\.{name}\b", text)
            if name not in known and not by_itself:
                raise SyntaxError(_explain(name, alias, package, pxd), (source, row, column + 1, line))


def _explain(name: str, alias: str, package: str, pxd: str) -> str:
    missing = f"ATen has no {name!r}" if package == "ATen" else f"the cimported {package} has no {name!r}"
    python = "" if package == "ATen" else f"for Python's, write: import {package}"
    at = alias if package == "ATen" else "at"
    known = _names_in(pxd, "ATen")
    if name in _SCALAR_TYPES:
        instead = f"the ScalarType is {at}.{_SCALAR_TYPES[name]}"
    elif name in known:
        instead = f"write {at}.{name}"
    elif (Path(pxd) / "ATen" / name).is_dir():
        return "; ".join(filter(None, [missing, python, f"for C++'s, write: from ATen.{name} cimport ..."]))
    elif module := module_of_ours(name, pxd):
        return "; ".join(filter(None, [missing, f"write: from {module} cimport {name}", python]))
    elif package == "ATen" and (near := difflib.get_close_matches(name, known, 1)):
        instead = f"did you mean {at}.{near[0]}?"
    else:
        return "; ".join(filter(None, [missing, python]))
    return f"{missing}; {instead}" + ("" if package == "ATen" else f", after: cimport ATen as at; {python}")


@functools.cache
def _names_in(pxd: str, module: str) -> frozenset[str]:
    """The names that the declarations of `module` declare, and those that they cimport."""
    path = Path(pxd, *module.split("."))
    text = _NO_NAMES.sub("", (path.with_suffix(".pxd") if not path.is_dir() else path / "__init__.pxd").read_text())
    names: set[str] = set()
    for origin, several, few in _CIMPORTED.findall(text):
        listed = (several or few).replace("\n", " ")
        if listed.strip() == "*":
            names |= _names_in(pxd, origin)
        else:
            names.update(one.split()[-1] for one in listed.split(",") if one.strip())
    for pattern in (_FUNCTION, _KIND, _ALIAS, _VARIABLE):
        names.update(name.rpartition(".")[2] for name in pattern.findall(text))
    return frozenset(names)


def module_of_ours(name: str, pxd: str) -> str | None:
    """The module of `interop` that declares `name`: the package itself where it hands the name on."""
    files = sorted(Path(pxd, "interop").rglob("*.pxd"), key=lambda path: (path.stem != "__init__", path))
    modules = [path.relative_to(pxd).with_suffix("").as_posix().replace("/", ".") for path in files]
    modules = [module.removesuffix(".__init__") for module in modules]
    return next((module for module in modules if name in _names_in(pxd, module)), None)


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
def refuse_to_replace_tensors() -> Iterator[None]:
    """While this lasts, Cython refuses ``x.cdata = t`` for a torch.Tensor `x`.

    A C++ tensor knows its Python object, and that one is not `x`; and what is freed may be in use by others.
    """

    in_place = None

    def make_in_place(original):
        def analyse_expressions(node, env):
            nonlocal in_place
            in_place = node.lhs  # of which refuse_in_place_operators says what to write
            return original(node, env)

        return analyse_expressions

    def make(original):
        def analyse_target_types(node, env):
            result = original(node, env)
            entry = getattr(result, "entry", None)
            owner = getattr(getattr(entry, "scope", None), "qualified_name", None)
            if node is not in_place and owner == "torch._tensor.Tensor" and entry.name == "cdata":
                error(
                    node.pos,
                    "the C++ tensor of a Python object cannot be replaced; return torch.wrap(...) of the other, "
                    "or write x.cdata.copy_(...) into this one, or x.cdata.set_data(...)",
                )
            return result

        return analyse_target_types

    with (
        replaced(InPlaceAssignmentNode, "analyse_expressions", make_in_place),
        replaced(AttributeNode, "analyse_target_types", make),
    ):
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
    ("interop.elementwise", "kernel"): (0, "function of kernel()"),
    ("interop.dispatch", "dispatch"): (2, "function of dispatch()"),
    ("interop.dispatch", "dispatch2d"): (2, "function of dispatch2d()"),
    ("interop.dispatch", "dispatch_part"): (2, "function of dispatch_part()"),
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
        elif what.startswith("function of dispatch") and len(kind.args) != _DISPATCHED[entry.name].count(",") + 2:
            yield argument.pos, f"a {what} has the parameters ({_DISPATCHED[entry.name]}, floating* _){_other(kind)}"
        elif what == "function of kernel()" and (kind.exception_check or kind.exception_value is not None):
            yield argument.pos, f"a {what} must be noexcept: {_noexcept(kind)}"


def _is_for_a_dtype(kind) -> bool:
    """Whether this is a specialisation among which dispatch() chooses."""
    last = kind.args[-1].type if kind.args else None
    return last is not None and last.is_ptr and last.base_type.is_numeric and bool(_other(kind))


def _other(kind) -> str:
    """What can take a function that is for a dtype."""
    fitting = (name for name, parameters in _DISPATCHED.items() if parameters.count(",") + 2 == len(kind.args))
    return "".join(f"; for this one there is {name}()" for name in fitting)


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
