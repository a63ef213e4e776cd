"""ATen for modules that run with many releases of torch: they call each schema by name through torch's C interface.

Their `at::Tensor` is a handle (``stable/include/interop/stable/tensor.h``), so a tensor that a function changes is
passed like any other. A function that returns its argument returns a new reference to it.
"""

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from torchgen.api.types import CppSignature
from torchgen.model import Argument, BaseTy, BaseType, NativeFunction

if TYPE_CHECKING:
    from interop.codegen.surface import Declaration

_CALL, _PYTHON_CALL, _ARITHMETIC = (f"interop/stable/{name}.h" for name in ("ivalue", "python_call", "arithmetic"))

_COMPARED = ("mul", "div", "eq", "ne", "lt", "le", "gt", "ge")
BY_HAND = {f"{name}.Scalar" for name in _COMPARED} | {"add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar"}
"""Schemas with a Scalar argument for which `_ARITHMETIC` has a shorter path than a call through Python."""


def declaration(function: NativeFunction, signature: CppSignature, native: "Declaration") -> "Declaration":
    """`native` with a wrapper that calls the schema by its name."""
    result = _result(native.result)
    listed = ", ".join(_parameter(one.decl()) for one in replace(signature, method=False).arguments())
    passed = ", ".join(_expression(one, function, signature) for one in function.func.arguments.flat_all)
    name = function.func.name
    if str(name) in BY_HAND:
        header, body = _ARITHMETIC, f"return stable::{name.name}({passed});"
    else:
        arguments = function.func.arguments
        by_name = needs_python(function)
        header = _PYTHON_CALL if by_name else _CALL
        keywords = ", ".join(f'"{one.name}"' for one in (*arguments.flat_kwarg_only, *arguments.out))
        listed_names = [f"{{{keywords}}}"] if by_name else []
        texts = ", ".join(_quoted(one) for one in (f"aten::{name.name}", name.overload_name, str(function.func)))
        body = (
            f"static constinit stable::{'PythonOperator' if by_name else 'Operator'} callee({texts});\n"
            f"  return callee.call<{result}>({', '.join(filter(None, [*listed_names, passed]))});"
        )
    return replace(
        native,
        result=result,
        parameters=tuple(replace(one, cpp=_parameter(one.cpp)) for one in native.parameters),
        definition=f"inline {result} {native.wrapper}({listed}) {{\n  {body}\n}}\n",
        header=header,
    )


def needs_python(function: NativeFunction) -> bool:
    """Whether the C interface cannot carry an argument or a result.

    It has no Scalar and no Generator. Up to torch 2.15 it also reads the last result as the type of the first one, and
    so on, so it fails on results whose types read differently backwards: ``(Tensor, Tensor[])``.
    """
    returned = [one.type for one in function.func.returns]
    listed = [*(one.type for one in function.func.arguments.flat_all), *returned]
    return returned != returned[::-1] or any(
        one.is_base_ty_like(kind) for one in listed for kind in (BaseTy.Scalar, BaseTy.Generator)
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _result(text: str) -> str:
    return re.sub(r"(const )?at::Tensor &", "at::Tensor", text)


def _parameter(text: str) -> str:
    text = text.replace("const at::ITensorListRef &", "at::TensorList")
    text = re.sub(r"(const |optional<)at::Scalar\b", r"\1c10::Scalar", text)  # types.STABLE_SCALAR
    return re.sub(r"(?<!const )at::Tensor &", "const at::Tensor &", text)


def _expression(argument: Argument, function: NativeFunction, signature: CppSignature) -> str:
    """The expression for an argument of the schema, from the parameters of the C++ signature."""
    options = function.func.arguments.tensor_options
    if options and not signature.faithful:
        if argument in options.all():
            return f"options.{'pinned_memory' if argument.name == 'pin_memory' else argument.name}_opt()"
        if argument.name == "memory_format":
            return "stable::memory_format_in(options, memory_format)"
    return f"int64_t{{{argument.name}}}" if argument.type == BaseType(BaseTy.DeviceIndex) else argument.name
