"""Give Python's operators their meaning for the types that C++ instantiates a function for.

To Cython, `scalar_t`, `opmath_t` and `acc_t` of interop/element_types.pxd are float and double. Cython would write
`powf(x, y)` for `x ** y` and `x + 7.0` for `x + 7`, and keep parts of an expression in a float, which is wrong for
double and for integers. So an expression with such an operand gets its C++ type, and operators that differ from those
of C++ become functions of csrc/include/interop/arithmetic.h.
"""

import re
from collections.abc import Callable
from types import MethodType
from typing import Any

from Cython.Compiler import ExprNodes, PyrexTypes
from Cython.Compiler.Errors import error
from Cython.Compiler.Visitor import CythonTransform, TreeVisitor

from interop.cython.patches import Patch

__all__ = ["ARITHMETIC", "Arithmetic", "has_templates", "missing_attributes"]

_IN_CPP = {"/": "true_divide", "//": "floor_divide", "%": "remainder", "**": "power"}
# The attributes that are set here, and that the nodes must have: Cython never reads one that it has renamed.
_SET = {
    "DivNode": ("calculate_result_code", "cdivision"),
    "PowNode": ("calculate_result_code",),
    "FloatNode": ("calculate_result_code",),
    "SimpleCallNode": ("calculate_result_code", "is_temp", "type"),
}
_kinds: dict[str, Any] = {}


def _spanning(original: Callable[..., Any]) -> Callable[..., Any]:
    def type_of_both(type1: Any, type2: Any) -> Any:
        return original(type1, type2) if type1 is type2 else _common(type1, type2) or original(type1, type2)

    return type_of_both


def _quotient(original: Callable[..., Any]) -> Callable[..., Any]:
    def compute_c_result_type(node: Any, type1: Any, type2: Any) -> Any:
        if node.operator == "/" and _common(type1, type2):
            return _cpp_type(f"::interop::Quotient<{_in_cpp(type1)}, {_in_cpp(type2)}>")
        return original(node, type1, type2)

    return compute_c_result_type


def _power(original: Callable[..., Any]) -> Callable[..., Any]:
    def compute_c_result_type(node: Any, type1: Any, type2: Any) -> Any:
        common = _common(type1, type2)
        if common and node.operand2.has_constant_result() and node.operand2.constant_result < 0:
            text = "a negative power of a type that C++ instantiates is not supported; write 1 / x, or 1 / x ** 2"
            error(node.pos, text)
        return common or original(node, type1, type2)

    return compute_c_result_type


def _inferred(original: Callable[..., Any]) -> Callable[..., Any]:
    def infer_type(node: Any, env: Any) -> Any:
        if _builtin_name(node, env) == "abs" and len(node.args or ()) == 1:
            kind = node.args[0].infer_type(env)
            if _is_of_template(kind):
                return _absolute(kind)
        return original(node, env)

    return infer_type


def _call(original: Callable[..., Any]) -> Callable[..., Any]:
    def analyse_c_function_call(node: Any, env: Any) -> None:
        name, given = _builtin_name(node, env), [one.type for one in node.args or ()]
        original(node, env)
        if name is None or not any(_is_of_template(kind) for kind in given):
            return
        if name == "abs" and len(given) == 1:
            node.type, node.is_temp = _absolute(given[0]), False
            node.calculate_result_code = MethodType(lambda self: _called("absolute", self.args), node)
        else:
            error(node.pos, f"{name}() has no version for a type that C++ instantiates; cast it to a C type")

    return analyse_c_function_call


class Arithmetic(CythonTransform):
    """Write operators and literals as calls, and reject conversions to and from Python objects.

    It visits the tree just before it is written, when Cython has already replaced ``x //= y``.
    """

    def visit_DivNode(self, node: Any) -> Any:
        self.visitchildren(node)
        if _is_of_template(node.type):
            node.cdivision = True  # otherwise Cython writes a function for `%` outside the template
            node.calculate_result_code = MethodType(
                lambda self: _called(_IN_CPP[self.operator], (self.operand1, self.operand2)), node
            )
        return node

    def visit_PowNode(self, node: Any) -> Any:
        return self.visit_DivNode(node)

    def visit_FloatNode(self, node: Any) -> Any:
        number, _, fraction = node.value.partition(".")
        if _is_of_template(node.type) and fraction == "0" and abs(int(number)) < 2**63:
            node.calculate_result_code = MethodType(
                lambda self: f"::interop::literal<{_in_cpp(self.type)}>({number})", node
            )
        return node

    def visit_CoerceToPyTypeNode(self, node: Any) -> Any:
        if _is_of_template(node.arg.type):
            text = "a value of a type that C++ instantiates cannot become a Python object; cast it to a C type"
            error(node.pos, text)
        self.visitchildren(node)
        return node

    def visit_CoerceFromPyTypeNode(self, node: Any) -> Any:
        if _is_of_template(node.type):
            text = "a Python object cannot become a value of a type that C++ instantiates; convert it to a C type"
            error(node.pos, text)
        self.visitchildren(node)
        return node


def missing_attributes() -> list[str]:
    """The attributes in `_SET` that this Cython's nodes lack."""
    nodes = {name: getattr(ExprNodes, name, None) for name in _SET}
    return [f"{name}.{one}" for name, node in nodes.items() for one in _SET[name] if not hasattr(node, one)]


def has_templates(tree: Any) -> bool:
    """Whether a tree with typed expressions has an expression of such a type."""
    visitor = _Templates()
    visitor.visit(tree)
    return visitor.found


class _Templates(TreeVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def visit_Node(self, node: Any) -> None:
        kind = getattr(node, "type", None)
        self.found = self.found or (getattr(kind, "is_float", False) and _is_of_template(kind))
        self.visitchildren(node)


def _is_of_template(kind: Any) -> bool:
    """Whether a type is known only when C++ instantiates the function."""
    return bool(kind.is_float) and "INTEROP_SCALAR" in kind.empty_declaration_code()


def _common(type1: Any, type2: Any) -> Any | None:
    """The type of ``a + b``, or None if Cython determines it."""
    if not (_is_of_template(type1) or _is_of_template(type2)):
        return None
    if not all((kind.is_int or kind.is_float or kind.is_enum) and not kind.is_pyobject for kind in (type1, type2)):
        return None
    return _cpp_type(f"::interop::Result<{_in_cpp(type1)}, {_in_cpp(type2)}>")


def _absolute(kind: Any) -> Any:
    return _cpp_type(f"::interop::Absolute<{_in_cpp(kind)}>")


def _cpp_type(code: str) -> Any:
    """A floating-point type to Cython, spelt `code` in C++; the same object for the same `code`."""
    if code not in _kinds:
        name = re.sub(r"::interop::|INTEROP_SCALAR", lambda found: "" if ":" in found[0] else "scalar_t", code)
        _kinds[code] = PyrexTypes.CTypedefType(name, PyrexTypes.c_double_type, code, is_external=1)
    return _kinds[code]


def _in_cpp(kind: Any) -> str:
    """The C++ spelling of a type, without `const` and `&`."""
    if kind.is_reference:
        kind = kind.ref_base_type
    if kind.is_cv_qualified:
        kind = kind.cv_base_type
    return str(kind.empty_declaration_code())


def _builtin_name(node: Any, env: Any) -> str | None:
    """The name of the called function if it is a built-in; otherwise None."""
    entry = env.lookup(node.function.name) if node.function.is_name else None
    return entry.name if entry is not None and entry.scope is not None and entry.scope.is_builtin_scope else None


def _called(function: str, operands: Any) -> str:
    return f"::interop::{function}({', '.join(one.result() for one in operands)})"


ARITHMETIC = tuple(
    Patch(target, make, without="the numbers of such types are wrong")
    for target, make in (
        ("PyrexTypes:widest_numeric_type", _spanning),
        ("PyrexTypes:independent_spanning_type", _spanning),
        ("ExprNodes:DivNode.compute_c_result_type", _quotient),
        ("ExprNodes:PowNode.compute_c_result_type", _power),
        ("ExprNodes:SimpleCallNode.infer_type", _inferred),
        ("ExprNodes:SimpleCallNode.analyse_c_function_call", _call),
    )
)
"""The patches that give expressions of such types their C++ types. `checks` requires them for a source with one."""
