"""Compute with the types that C++ instantiates a function for, as Python's operators do.

`scalar_t`, `opmath_t` and `acc_t` of interop/element_types.pxd are float and double to Cython, so it writes
`powf(x, y)` for `x ** y`, and `x + 7.0` for `x + 7`: wrong for double, and for integers. In C++ they are of any type;
csrc/include/interop/arithmetic.h has the operators for all.
"""

from collections.abc import Callable
from typing import Any

from Cython.Compiler.Visitor import CythonTransform

__all__ = ["Arithmetic", "absolute"]

_IN_CPP = {"/": "true_divide", "//": "floor_divide", "%": "remainder", "**": "power"}


class Arithmetic(CythonTransform):
    """Write these operators and literals as calls. It visits a tree that is about to be written."""

    def visit_DivNode(self, node: Any) -> Any:
        self.visitchildren(node)
        if is_of_template(node.type):
            node.cdivision = True  # else Cython writes a function for `%` outside of the template
            _write(node, _IN_CPP[node.operator], node.operand1, node.operand2)
        return node

    def visit_PowNode(self, node: Any) -> Any:
        return self.visit_DivNode(node)

    def visit_FloatNode(self, node: Any) -> Any:
        number, _, fraction = node.value.partition(".")
        if is_of_template(node.type) and fraction == "0" and abs(int(number)) < 2**63:
            code = f"::interop::literal<{node.type.empty_declaration_code()}>({number})"
            node.calculate_result_code = lambda: code
        return node


def absolute(original: Callable[..., Any]) -> Callable[..., Any]:
    """The `SimpleCallNode.analyse_c_function_call` that replaces `original`: abs() of such a type is of this type."""

    def analyse_c_function_call(node: Any, env: Any) -> None:
        entry = getattr(node.function, "entry", None)
        is_abs = entry is not None and entry.name == "abs" and entry.scope.is_builtin_scope
        original(node, env)
        if is_abs and len(node.args) == 1 and is_of_template(node.args[0].type):
            node.type, node.is_temp = node.args[0].type, False
            _write(node, "absolute", node.args[0])

    return analyse_c_function_call


def is_of_template(kind: Any) -> bool:
    """Whether C++ knows the type of an expression only when it instantiates the function."""
    return bool(kind.is_float) and "INTEROP_SCALAR" in kind.empty_declaration_code()


def _write(node: Any, function: str, *operands: Any) -> None:
    """Make an expression a call of a function in C++, with operands of the expression's type."""
    kind = node.type.empty_declaration_code()

    def calculate_result_code() -> str:
        return f"::interop::{function}<{kind}>({', '.join(operand.result() for operand in operands)})"

    node.calculate_result_code = calculate_result_code
