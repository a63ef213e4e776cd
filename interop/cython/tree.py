"""Cython's parse tree, as our checks read it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from Cython.Compiler import ExprNodes, ModuleNode, Nodes
from Cython.Compiler.Visitor import EnvTransform, TreeVisitor

__all__ = ["Position", "ScopedVisitor", "Written", "WrittenTypes", "missing_nodes", "path_of", "path_of_type"]

Position = tuple[Any, int, int]
"""A position: Cython's object for the source, the line from 1, the column from 0."""


@dataclass(frozen=True)
class Written:
    """A type as written in a source: the names between its dots."""

    position: Position
    path: Sequence[str]

    def __str__(self) -> str:
        return ".".join(self.path)


@dataclass
class WrittenTypes:
    """The types in a source that has just been parsed. Cython drops them when it analyses declarations."""

    named: list[Written] = field(default_factory=list)
    of_variables: dict[Position, Written] = field(default_factory=dict)
    """By the position of the variable's name."""

    def collect(self, tree: Any) -> Any:
        """Collect the types in a tree, and return the tree, as a stage of Cython's pipeline does."""
        _Collector(self).visit(tree)
        return tree


class _Collector(TreeVisitor):
    def __init__(self, types: WrittenTypes):
        super().__init__()
        self._types = types

    def visit_Node(self, node: Any) -> None:
        self.visitchildren(node)

    def visit_CDefExternNode(self, node: Any) -> None:
        """Skip the thousands of C++ declarations in .pxd files. Cython itself reports their errors."""
        if node.pos[0].filename.endswith(".pyx"):
            self.visitchildren(node)

    def visit_ExprNode(self, node: Any) -> None:
        self.visitchildren(node)
        for name in ("base_type", "cppclass"):  # of casts, sizeof and new, not among their children
            part = getattr(node, name, None)
            if part is not None:
                self.visit(part)

    def visit_CSimpleBaseTypeNode(self, node: Any) -> None:
        if path_of_type(node):
            self._types.named.append(Written(node.pos, path_of_type(node)))

    def visit_TemplatedTypeNode(self, node: Any) -> None:
        """The parser treats template arguments as expressions."""
        self.visitchildren(node)
        for argument in node.positional_args:
            path = path_of(argument)
            if path:
                self._types.named.append(Written(argument.pos, path))

    def visit_CVarDefNode(self, node: Any) -> None:
        self.visitchildren(node)
        if path_of_type(node.base_type):
            for declarator in node.declarators:
                self._types.of_variables[declarator.pos] = Written(node.base_type.pos, path_of_type(node.base_type))


class ScopedVisitor(EnvTransform):
    """Visit a tree after Cython has declared its names, and record errors.

    It raises nothing, because Cython reports an exception during a visit as a crash of the compiler.
    """

    def __init__(self, context: Any, found: list[SyntaxError]):
        super().__init__(context)
        self._found = found

    def refuse(self, message: str, position: Position, name: str = "") -> None:
        """Record an error in the line of `position`; if `name` is given, at the first `name` after `position`."""
        source, line, column = position
        lines = source.get_lines(error_handling="replace")
        text = lines[line - 1].rstrip() if 0 < line <= len(lines) else ""
        # Cython 3.1 counts columns differently inside an f-string.
        offset = 1 + max(text.find(name, column), text.find(name), 0) if name else 1
        self._found.append(SyntaxError(message, (source.get_error_description(), line, offset, text)))

    def meaning(self, path: Sequence[str]) -> Any:
        """The entry of a dotted name in Cython's symbol table, seen from the visitor's scope; None if there is none.

        Cython's own look-up has side effects: it makes a name of an outer function part of a closure.
        """
        scope = self.current_env()
        entry = None
        for number, name in enumerate(path):
            entry = scope.lookup_here(name) if scope is not None else None
            while entry is None and number == 0 and scope is not None:
                scope = scope.outer_scope
                entry = scope.lookup_here(name) if scope is not None else None
            scope = entry.as_module if entry is not None else None
        return entry


def path_of(node: Any) -> list[str]:
    """The parts of an expression that is a dotted name; empty for any other expression."""
    if getattr(node, "is_name", False):
        return [node.name]
    owner = path_of(node.obj) if getattr(node, "is_attribute", False) else []
    return [*owner, node.attribute] if owner else []


def path_of_type(node: Any) -> list[str]:
    """The parts of a type that is a dotted name; empty for any other type."""
    name = getattr(node, "name", None)
    return [*node.module_path, name] if name is not None and hasattr(node, "module_path") else []


def missing_nodes(visitor: type) -> list[str]:
    """The classes of nodes that a visitor has methods for, and that this Cython lacks: it would never call these."""
    names = [name.removeprefix("visit_") for name in vars(visitor) if name.startswith("visit_")]
    return [name for name in names if not any(hasattr(module, name) for module in (Nodes, ExprNodes, ModuleNode))]
