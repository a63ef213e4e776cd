"""Reject code, during Cython's translation, that Cython or C++ would get wrong or explain badly, or correct it.

Each check is a step of Cython's own compilation that visits the parse tree: after Cython has declared names
(`unknown_names`, `guards`), or after it has typed the expressions. `callback_functions` replaces a method instead.
`template_arithmetic` changes types and the tree.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from Cython.Compiler.Errors import CompilerCrash, error, get_errors_count
from Cython.Compiler.Visitor import CythonTransform

from interop.cython.callback_functions import check_functions
from interop.cython.guards import Guards
from interop.cython.patches import Patch, applied
from interop.cython.template_arithmetic import ARITHMETIC, Arithmetic, has_templates, missing_attributes
from interop.cython.tree import WrittenTypes, missing_nodes
from interop.cython.unknown_names import UnknownNames
from interop.cython.versions import CythonVersionError, supported, version

__all__ = ["checked"]

_IN_PLACE = {
    "+": "add_",
    "-": "sub_",
    "*": "mul_",
    "/": "div_",
    "&": "bitwise_and_",
    "|": "bitwise_or_",
    "^": "bitwise_xor_",
}
_OF_SYMBOLS = {"/": "floordiv", "//": "floordiv", "%": "mod"}
# What torch-interop cannot do without the parts of Cython that a check uses.
_GUARDS = "reject guards that do nothing, or that change the mode of other code"
_TENSORS = "reject `t += u`, whose exception ends the process, and assignments to .cdata, which free tensors in use"
_ARITHMETIC = "prevent wrong numbers of scalar_t, opmath_t and acc_t"


@contextlib.contextmanager
def checked() -> Iterator[None]:
    """In this context, Cython checks the sources that it translates, and the functions in each .pxd that it reads.

    Guards and unknown names raise SyntaxError; all other checks report a Cython error.
    """
    absent = [(one.name, one.without) for one in _REQUIRED if one.owner() is None]
    absent += [(name, without) for check, without in _VISITORS.items() for name in missing_nodes(check)]
    if absent:
        raise missing(*absent[0])
    with applied(_REQUIRED), applied(ARITHMETIC):
        yield


def _with_checks(original: Callable[..., Any]) -> Callable[..., Any]:
    noted: WeakKeyDictionary[Any, list[SyntaxError]] = WeakKeyDictionary()

    def create_pipeline(context: Any, mode: str, exclude_classes: Any = ()) -> list[Any]:
        found = noted.setdefault(context, [])
        types = WrittenTypes()
        after = {
            "AnalyseDeclarationsTransform": [
                _step(UnknownNames(context, found, types), is_needed=False),
                _step(Guards(context, found, types)),
            ],
            "AnalyseExpressionsTransform": [_step(Tensors(context))],
            "FinalOptimizePhase": [_step(Arithmetic(context))],
        }
        planned = original(context, mode, exclude_classes=exclude_classes)
        absent = [name for name in after if not any(type(step).__name__ == name for step in planned)]
        for name in absent:
            if name in _STEPS:
                raise missing(name, _STEPS[name])
        # Only a source with a template needs these.
        absent += [one.name for one in ARITHMETIC if one.owner() is None]
        absent += missing_nodes(Arithmetic) + missing_attributes()
        if absent:
            after["AnalyseExpressionsTransform"].append(_step(lambda tree: _require_arithmetic(tree, absent[0])))
        if mode != "pxd":  # Cython reads a .pxd while it analyses the source's declarations
            after["AnalyseDeclarationsTransform"].append(_step(lambda _: _raise_first(found)))
        steps = [_step(types.collect, is_needed=False)]
        for step in planned:
            steps += [step, *after.pop(type(step).__name__, ())]
        return steps

    return create_pipeline


def _require_arithmetic(tree: Any, name: str) -> None:
    if has_templates(tree):
        raise missing(name, _ARITHMETIC)


def _raise_first(found: list[SyntaxError]) -> None:
    if found:
        raise min(found, key=lambda error: (error.lineno or 0, error.offset or 0))


def _step(check: Callable[[Any], Any], is_needed: bool = True) -> Callable[[Any], Any]:
    """A step of Cython's compilation that runs a check. An optional check only improves on Cython's message."""

    def step(tree: Any) -> Any:
        if tree.pos[0].filename is not None:  # None for Cython's own sources, which are strings
            try:
                check(tree)
            except CompilerCrash as crash:
                # After an error, Cython may leave an inconsistent tree.
                if is_needed and not get_errors_count():
                    name = f"syntax tree of the form that {type(check).__name__} needs"
                    raise missing(name, _VISITORS.get(type(check), _ARITHMETIC)) from crash
        return tree

    return step


def missing(name: str, without: str) -> CythonVersionError:
    """The error for a name of Cython that this release lacks, and what torch-interop cannot do without it."""
    return CythonVersionError(
        f"Cython {version()} has no {name}, so torch-interop cannot {without}; install Cython {supported()}"
    )


class Tensors(CythonTransform):
    """Reject ``t += u`` of tensors, ``n //= k`` of symbolic numbers, ``x.cdata = t`` and a str as a C string.

    Cython copies the operator into C++ unchanged. An exception of ATen there ends the process, because Cython cannot
    declare this expression ``except +``.

    C++'s ``n /= k``, which Cython writes for ``n //= k``, rounds numbers towards zero. It has no ``f += g`` for an
    at.SymFloat.

    A C++ tensor knows its Python object, and that of `t` is not `x`. Also, other code may still use the tensor that
    the assignment frees.

    Cython takes only bytes for a C string, unless the directive c_string_encoding is set: with a str, such as an
    f-string in check(), each call would raise TypeError.
    """

    def visit_InPlaceAssignmentNode(self, node: Any) -> Any:
        kind = node.lhs.type
        if kind.is_reference:
            kind = kind.ref_base_type
        name = kind.empty_declaration_code().strip() if kind.is_cpp_class else ""
        if name == "c10::SymInt" and node.operator in _OF_SYMBOLS:
            function = _OF_SYMBOLS[node.operator]
            error(
                node.pos,
                f"`{node.operator}=` of an at.SymInt would be C++'s, which is not Python's for negative numbers; "
                f"write n = {function}(n, k), after: from interop cimport {function}",
            )
        elif name == "c10::SymFloat":
            error(node.pos, f"C++ has no `{node.operator}=` of an at.SymFloat; write f = f {node.operator} g")
        elif name == "at::Tensor":
            error(
                node.pos,
                f"an exception in `{node.operator}=` of an at.Tensor would end the process; "
                f"write t = t {node.operator} u, or in place t.{_IN_PLACE.get(node.operator, '...')}(u)",
            )
        else:
            self.visitchildren(node)
        return node

    def visit_CoerceFromPyTypeNode(self, node: Any) -> Any:
        is_text = node.type.is_string or getattr(node.type, "is_cpp_string", False)
        is_str = node.arg.type.is_builtin_type and node.arg.type.name in ("str", "unicode")  # before and since 3.2
        directives: Any = self.current_directives
        if is_text and is_str and not directives["c_string_encoding"]:
            error(node.pos, "a str does not become a C string: this would raise TypeError; write bytes, text.encode()")
        self.visitchildren(node)
        return node

    def visit_AttributeNode(self, node: Any) -> Any:
        if node.is_target and node.attribute == "cdata" and _is_tensor(node.obj.type):
            error(
                node.pos,
                "the C++ tensor of a Python object cannot be replaced; return torch.wrap(...) of the other, "
                "or write x.cdata.copy_(...) into this one, or x.cdata.set_data(...)",
            )
        self.visitchildren(node)
        return node


def _is_tensor(kind: Any) -> bool:
    """Whether a type is torch.Tensor or derives from it."""
    while kind is not None and kind.is_extension_type:
        if kind.scope.qualified_name == "torch._tensor.Tensor":
            return True
        kind = kind.base_type
    return False


# Without these, no source is translated.
_STEPS = {"AnalyseDeclarationsTransform": _GUARDS, "AnalyseExpressionsTransform": _TENSORS}
_VISITORS: dict[type, str] = {Guards: _GUARDS, Tensors: _TENSORS}
_REQUIRED = (
    Patch("Pipeline:create_pipeline", _with_checks, without=_GUARDS),
    Patch(
        "ExprNodes:SimpleCallNode.analyse_c_function_call",
        check_functions,
        without="reject functions that need the GIL, and end the process when torch calls them without it",
    ),
)
