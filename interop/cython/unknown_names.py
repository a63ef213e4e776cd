"""Reject names that torch's declarations do not have, and suggest the nearest existing name."""

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from interop.cython.declared_names import OURS, absent_in_stable, module_of_ours, names_in, nearest
from interop.cython.tree import Position, ScopedVisitor, WrittenTypes, path_of
from interop.paths import get_pxd_dir

__all__ = ["UnknownNames"]

# Python's names of element types, and the C++ names.
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


class UnknownNames(ScopedVisitor):
    """Raise SyntaxError for a name that a cimported module of ours does not have.

    With the directive nonecheck, Cython's compiler reports such a name and then crashes.
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
        """Check the last name of `path`, whose names are at or around `position`."""
        owner = self.meaning(path[:-1])
        module = owner.as_module if owner is not None and not owner.is_variable else None
        # Cython itself reports names that are missing in other packages. If the module is also imported, an undeclared
        # name may be Python's.
        if module is None or module.qualified_name.partition(".")[0] not in OURS or module.lookup_here(path[-1]):
            return
        self.refuse(_explain(path[-1], module, ".".join(path[:-1])), position, path[-1])


def _explain(name: str, module: Any, alias: str) -> str:
    package = module.qualified_name
    if package not in ("ATen", "interop", "torch"):
        near = nearest(name, _names_in(module))
        return f"the cimported {package} has no {name!r}" + (f"; did you mean {alias}.{near}?" if near else "")
    pxd = get_pxd_dir()
    missing = f"ATen has no {name!r}" if package == "ATen" else f"the cimported {package} has no {name!r}"
    python = "" if package == "ATen" else f"for Python's module, write: import {package}"
    at = alias if package == "ATen" else "at"
    known = names_in(pxd, "ATen")
    if package != "ATen" and name in names_in(pxd, package):
        absent = absent_in_stable(f"{alias}.{name}")
        return f"{absent}, or leave the type of a variable out; {python}" if _is_class(package, name) else absent
    if name in _SCALAR_TYPES:
        instead = f"the ScalarType is {at}.{_SCALAR_TYPES[name]}"
    elif name in known and package == "ATen":
        return absent_in_stable(f"{alias}.{name}")
    elif name in known:
        instead = f"write {at}.{name}"
    elif (Path(pxd) / "ATen" / name).is_dir():
        return "; ".join(filter(None, [missing, python, f"for C++'s {name}, write: from ATen.{name} cimport ..."]))
    elif module_of_it := module_of_ours(name, pxd):
        return "; ".join(filter(None, [missing, f"write: from {module_of_it} cimport {name}", python]))
    elif not _python_has(package, name) and (near := nearest(name, names_in(pxd, package))):
        return f"{missing}; did you mean {alias}.{near}?"
    else:
        return "; ".join(filter(None, [missing, python]))
    return f"{missing}; {instead}" + ("" if package == "ATen" else f", after: cimport ATen as at; {python}")


def _python_has(package: str, name: str) -> bool:
    """Whether the Python package has the name, which the author may have meant."""
    return package in sys.modules and hasattr(sys.modules[package], name)


def _is_class(package: str, name: str) -> bool:
    """Whether the Python package has a class of this name, so that a variable needs no type to have such an object."""
    return isinstance(getattr(sys.modules.get(package), name, None), type)


def _names_in(module: Any) -> set[str]:
    return {name for name in module.entries if not name.startswith("__")}
