"""Refuses names that the declarations of torch do not have, with the nearest name that they have."""

import difflib
import functools
import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from interop.cython.tree import Position, ScopedVisitor, WrittenTypes, path_of
from interop.paths import get_pxd_dir

__all__ = ["UnknownNames", "module_of_ours", "names_in"]

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
# Whose names we know. Of other modules Cython says itself what is missing.
_OURS = ("ATen", "c10", "interop", "torch")


class UnknownNames(ScopedVisitor):
    """Raises SyntaxError for a name that a cimported module of ours does not have.

    With the directive nonecheck, Cython's own message for it is followed by a crash of the compiler.
    """

    def __init__(self, context: Any, found: list[SyntaxError], types: WrittenTypes):
        super().__init__(context, found)
        self._types = types

    def visit_ModuleNode(self, node: Any) -> Any:
        for written in self._types.named:
            for end in range(2, len(written.path) + 1):
                self._check(written.path[:end], written.position)
        self.visitchildren(node)
        return node

    def visit_ImportNode(self, node: Any) -> Any:
        name = node.module_name.value
        if name.partition(".")[0] == "ATen" and not node.level and not importlib.util.find_spec("ATen"):
            self.refuse("there is no Python module ATen; write: cimport ATen as at", node.pos)
        return node

    def visit_AttributeNode(self, node: Any) -> Any:
        self._check(path_of(node), node.pos)
        self.visitchildren(node)
        return node

    def visit_AnnotationNode(self, node: Any) -> Any:
        self.visit(node.expr)
        return node

    def _check(self, path: Sequence[str], position: Position) -> None:
        """Check the last of the names of `path`, which stand at `position`, or around it."""
        owner = self.meaning(path[:-1])
        module = owner.as_module if owner is not None and not owner.is_variable else None
        # Of a module that is imported as well, Python has what is not declared.
        if module is None or module.qualified_name.partition(".")[0] not in _OURS or module.lookup_here(path[-1]):
            return
        message = _explain(path[-1], ".".join(path[:-1]), module.qualified_name, get_pxd_dir())
        self.refuse(message, position, path[-1])


def _explain(name: str, alias: str, package: str, pxd: str) -> str:
    if package not in ("ATen", "interop", "torch"):
        near = difflib.get_close_matches(name, names_in(pxd, package), 1)
        return f"the cimported {package} has no {name!r}" + (f"; did you mean {alias}.{near[0]}?" if near else "")
    missing = f"ATen has no {name!r}" if package == "ATen" else f"the cimported {package} has no {name!r}"
    python = "" if package == "ATen" else f"for Python's, write: import {package}"
    at = alias if package == "ATen" else "at"
    known = names_in(pxd, "ATen")
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
def names_in(pxd: str, module: str) -> frozenset[str]:
    """The names that the declarations of `module` declare, and those that they cimport."""
    path = Path(pxd, *module.split("."))
    text = _NO_NAMES.sub("", (path.with_suffix(".pxd") if not path.is_dir() else path / "__init__.pxd").read_text())
    names: set[str] = set()
    for origin, several, few in _CIMPORTED.findall(text):
        listed = (several or few).replace("\n", " ")
        if listed.strip() == "*":
            names |= names_in(pxd, origin)
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
    return next((module for module in modules if name in names_in(pxd, module)), None)
