"""Let the result of a C++ function that returns a reference be an operand: ``v.value()[0]``, ``a < v.value()``.

Cython keeps the result in a `__Pyx_FakeReference`, a class that converts to the reference, if the function can raise.
C++ converts no operand of a member operator, such as [], nor to the type that a template or another conversion needs.
"""

from typing import Any

from Cython.Compiler.ExprNodes import CoercionNode
from Cython.Compiler.PyrexTypes import CReferenceType
from Cython.Compiler.Visitor import CythonTransform

__all__ = ["References"]


class _Referred(CoercionNode):
    """The object that a `__Pyx_FakeReference` refers to."""

    def __init__(self, arg: Any):
        super().__init__(arg)
        self.type = CReferenceType(arg.type.ref_base_type)

    def calculate_result_code(self) -> str:
        return f"(*&{self.arg.result()})"  # the class has an operator & that returns the address

    def generate_result_code(self, code: Any) -> None:
        """The operand has written all the code that there is."""


class References(CythonTransform):
    """Replace such operands. It visits the tree just before it is written."""

    def visit_IndexNode(self, node: Any) -> Any:
        return self._with_operands(node, "base", "index")

    def visit_UnopNode(self, node: Any) -> Any:
        return self._with_operands(node, "operand")

    def visit_BinopNode(self, node: Any) -> Any:
        return self._with_operands(node, "operand1", "operand2")

    def visit_PrimaryCmpNode(self, node: Any) -> Any:
        return self._with_operands(node, "operand1", "operand2")

    def visit_CascadedCmpNode(self, node: Any) -> Any:
        return self._with_operands(node, "operand2")

    def _with_operands(self, node: Any, *names: str) -> Any:
        self.visitchildren(node)
        for name in names:
            operand = getattr(node, name)
            if operand is not None and operand.type.is_reference and operand.type.is_fake_reference:
                setattr(node, name, _Referred(operand))
        return node
