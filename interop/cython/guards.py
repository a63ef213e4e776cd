"""Reject guards that would have no effect, or the wrong one.

A guard is a scoped mode of torch: gradients off, another device, another stream. It begins when it is assigned to a
variable, and ends with the function. Declaring it is not enough: Cython silently omits such a variable.
"""

import contextlib
from typing import Any

from interop.cython.tree import ScopedVisitor, Written, WrittenTypes, path_of, path_of_type

__all__ = ["GUARDS", "Guards"]

GUARDS = {
    "interop::NoGradGuard": "",
    "interop::AutoGradMode": "False",
    "interop::InferenceMode": "",
    "interop::AutoDispatchBelowAutograd": "",
    "interop::DeviceGuard": "tensor.device()",
    "interop::StreamGuard": "stream",
    "interop::cuda::CUDAGuard": "tensor.device()",
    "interop::cuda::CUDAStreamGuard": "stream",
    "interop::cuda::Launch": "tensor",
}
"""The C++ classes of guards, each with a usual argument."""


class _Function:
    """The guards of a function."""

    def __init__(self, scope: Any):
        self.scope = scope
        self.suspends = False
        self.begun: list[Written] = []


class Guards(ScopedVisitor):
    """Raise SyntaxError for a guard that would have no effect, or the wrong one.

    In a generator or a coroutine, a guard would last from the first step to the last, even while the caller runs in
    between. As an attribute or a global variable, it would outlast the function that begins it.
    """

    def __init__(self, context: Any, found: list[SyntaxError], types: WrittenTypes):
        super().__init__(context, found)
        self._types = types
        self._functions: list[_Function] = []
        self._assigned: Any = None
        self._begun: set[int] = set()  # the ids of the entries of guards that are begun

    def visit_ModuleNode(self, node: Any) -> Any:
        self.visitchildren(node)
        self._refuse_outside_functions(node.scope)
        return node

    def visit_CClassDefNode(self, node: Any) -> Any:
        self.visit_ClassDefNode(node)
        if node.scope is not None:  # None for a forward declaration
            self._refuse_outside_functions(node.scope)
        return node

    def visit_FuncDefNode(self, node: Any) -> Any:
        function = _Function(node.local_scope)
        self._functions.append(function)
        super().visit_FuncDefNode(node)
        self._functions.pop()
        declared = self._declared(function.scope)
        for entry, name in declared:
            if id(entry) not in self._begun:
                argument = GUARDS[_guard(entry.type)]
                self.refuse(
                    f"{entry.name!r} is declared but never assigned here, so this guard would do nothing; "
                    f"write: cdef {name} {entry.name} = {name}({argument})",
                    name.position,
                )
        if function.suspends:
            for name in [name for _, name in declared] + function.begun:
                self.refuse(
                    f"a {name.path[-1]} cannot be used in a generator or coroutine: its mode would leak out",
                    name.position,
                )
        return node

    def visit_YieldExprNode(self, node: Any) -> Any:
        function = self._function()
        if function is not None:
            function.suspends = True
        self.visitchildren(node)
        return node

    def visit_SingleAssignmentNode(self, node: Any) -> Any:
        self._assigned = node.rhs
        self.visitchildren(node)
        return node

    visit_CascadedAssignmentNode = visit_SingleAssignmentNode

    def visit_SimpleCallNode(self, node: Any) -> Any:
        allocated = getattr(node.function, "cppclass", None)
        path = path_of(node.function) if allocated is None else path_of_type(allocated)
        entry = self.meaning(path)
        kind = _guard(entry.type) if entry is not None and entry.is_type else ""
        if kind:
            name = Written(node.pos, path)
            if allocated is not None or node is not self._assigned:
                made = _text(node) if allocated is None else ""
                self.refuse(
                    f"this {name} would end with its statement; "
                    f"write: cdef {name} guard = {made or f'{name}({GUARDS[kind]})'}",
                    name.position,
                )
            function = self._function()
            if function is not None:
                function.begun.append(name)
        self.visitchildren(node)
        return node

    visit_GeneralCallNode = visit_SimpleCallNode

    def visit_AttributeNode(self, node: Any) -> Any:
        if node.obj.is_name:
            # Methods reset_...() and set_...() also begin guards of devices and streams.
            self._use(node.obj, begins=node.attribute.startswith(("reset_", "set_")))
        else:
            self.visitchildren(node)
        return node

    def visit_NameNode(self, node: Any) -> Any:
        self._use(node, begins=True)
        return node

    def _function(self) -> _Function | None:
        """The function that evaluates the visited node. The enclosing function evaluates the defaults of arguments."""
        scope = self.current_env()
        while scope is not None:
            for function in self._functions:
                if function.scope is scope:
                    return function
            scope = scope.outer_scope
        return None

    def _use(self, node: Any, begins: bool) -> None:
        entry = self.meaning([node.name])
        if entry is None or entry.is_type or not _guard(entry.type):
            return
        entry = entry.defining_entry  # not the entry of an inner function
        if begins:
            self._begun.add(id(entry))
        function = self._function()
        if entry.scope.is_local_scope and (function is None or entry.scope is not function.scope):
            self.refuse(
                f"{node.name!r} cannot be used in an inner function, which would keep it: its mode would leak out",
                node.pos,
            )

    def _refuse_outside_functions(self, scope: Any) -> None:
        for _, name in self._declared(scope):
            self.refuse(
                f"a {name.path[-1]} must be a local variable of a function; elsewhere its mode would leak out",
                name.position,
            )

    def _declared(self, scope: Any) -> list[tuple[Any, Written]]:
        """The guards among the variables of a scope, each with its type as written."""
        found = []
        for entry in scope.entries.values():
            kind = "" if entry.is_type or entry.is_arg or entry.visibility == "extern" else _guard(entry.type)
            if kind and entry.scope is scope and not entry.from_closure:
                unknown = Written(entry.pos, [kind.rpartition("::")[2]])
                found.append((entry, self._types.of_variables.get(entry.pos, unknown)))
        return found


def _guard(kind: Any) -> str:
    """The C++ class of a type if it is in `GUARDS`; otherwise empty."""
    name = str(kind.resolve().empty_declaration_code()) if kind.is_cpp_class else ""
    return name if name in GUARDS else ""


def _text(call: Any) -> str:
    """The source text of a call; empty if it has expressions that Cython cannot write."""
    with contextlib.suppress(Exception):
        from Cython.CodeWriter import ExpressionWriter  # may be missing in another release

        return str(ExpressionWriter().write(call))
    return ""
