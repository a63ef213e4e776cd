"""Writes a call of ATen in Cython: its shape, and the values that fill it.

The shape is all that a compiler sees: the function's name and the kind of each argument (a tensor, a C number, a Python
object, None, ...). Calls that differ only in values share a shape.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload

from interop.codegen.surface import read
from opdb import STABLE
from opdb.capture import Call

OPTIONS = ("dtype", "layout", "device", "pin_memory")

# The ways to write a call. "plain" is the simplest: Python lists, a torch.dtype. "typed" has C++ types throughout, and
# so runs without the GIL. "method" is "plain", called on the tensor.
FORMS = ("plain", "typed", "method")

# Overloads whose defaults must be written, because a call without them selects another overload.
SPELLED_OUT = {"stft"}  # at.stft(t, n) is stft.center, which is also what torch.stft(t, n) does

# Methods, with numbers of arguments, that are not declared on purpose: Cython passes True as the int 1, which another
# overload accepts. docs/cimport-guide.md says so. The functions, which are called here as well, have no gaps.
METHODS_LEFT_OUT = {"argsort": (1, 2), "sort": (1, 2), "std": (1, 2, 3), "var": (1, 2, 3)}


class NotDeclaredError(Exception):
    """No declaration fits this call. The message is the reason."""


@dataclass(frozen=True)
class Shape:
    """One call as a compiler sees it. `receiver` is the index of the argument on which a method is called."""

    name: str
    kinds: tuple[str, ...]
    returns: tuple[str, ...]
    receiver: int | None
    overload: str  # for messages; Cython finds the overload by itself

    @property
    def key(self) -> str:
        return f"{self.name}|{self.overload}|{self.receiver}|{','.join(self.kinds)}"


@functools.cache
def surface() -> tuple[set[str], set[str], dict[str, str]]:
    """The overloads declared as functions, those declared as methods, and the reasons why others are not declared."""
    declared = read(for_stable=STABLE is not None)
    functions = {_overload(declaration.schema) for declaration in declared.functions}
    methods = {_overload(declaration.schema) for declaration in declared.methods}
    by_hand = set() if STABLE else {_overload(schema) for schema in declared.by_hand}
    return functions | by_hand, methods | by_hand, {_overload(s): reason for s, reason in declared.left_out.items()}


def _overload(schema: str) -> str:
    return schema.partition("(")[0]


@dataclass(frozen=True)
class _Parameter:
    name: str
    type: str  # as in a schema, without the "?" of an optional type
    optional: bool
    length: int | None  # of a list of fixed length
    default: Any
    has_default: bool
    out: bool


@dataclass(frozen=True)
class _Overload:
    """The facts about one overload, cached because torch reads its schemas slowly and there are many samples."""

    name: str
    overload: str
    parameters: tuple[_Parameter, ...]
    returns: tuple[str, ...]
    has_options: bool  # whether dtype, layout, device and pin_memory are one TensorOptions in C++


@functools.cache
def _read(overload: OpOverload) -> _Overload:
    schema = overload._schema
    parameters = tuple(
        _Parameter(
            argument.name,
            re.sub(r"^Optional\[(.*)\]$", r"\1", str(argument.real_type)).replace("SymInt", "int"),
            str(argument.real_type).startswith("Optional["),
            argument.N,
            argument.default_value,
            argument.has_default_value(),
            bool(argument.kwarg_only and argument.alias_info and argument.alias_info.is_write),
        )
        for argument in schema.arguments
    )
    # An overload with several out arguments returns nothing here, because the caller has them.
    several_out = len(schema.returns) > 1 and all(r.alias_info and r.alias_info.is_write for r in schema.returns)
    name = schema.name.removeprefix("aten::")
    return _Overload(
        name,
        f"{name}.{schema.overload_name}" if schema.overload_name else name,
        parameters,
        () if several_out else tuple(str(result.real_type) for result in schema.returns),
        {argument.name for argument in schema.arguments if argument.kwarg_only}.issuperset(OPTIONS),
    )


def write(call: Call, form: str) -> tuple[Shape, list[Any]]:
    """The shape of `call` and its values, as a function if there is one, else as a method."""
    if call.overload.namespace != "aten":
        raise NotDeclaredError("a function outside of ATen")
    overload = _read(call.overload)
    functions, methods, left_out = surface()
    method = form == "method" or overload.overload not in functions
    if overload.overload not in (methods if method else functions):
        raise NotDeclaredError(left_out.get(overload.overload, "not declared"))
    written = _arguments(overload, call, form)
    receiver = [name for name, _, _ in written].index("self") if method else None
    name = overload.name
    outs = {parameter.name for parameter in overload.parameters if parameter.out}
    if outs:
        # In C++, f_outf takes the out arguments last, and f_out takes them first.
        name += "_out" if form == "typed" else "_outf"
        if form == "typed":
            written.sort(key=lambda argument: argument[0] not in outs)
    if method and len(written) - 1 in METHODS_LEFT_OUT.get(name, ()):
        raise NotDeclaredError("a method that is left out where a truth value could be taken for a number")
    kinds = tuple(kind for _, kind, _ in written)
    shape = Shape(name, kinds, overload.returns, receiver, overload.overload)
    return shape, [value for _, _, value in written]


def call_forms(call: Call) -> Iterator[tuple[Shape, list[Any]]]:
    """All distinct ways to write `call`."""
    seen = set()
    for form in FORMS:
        try:
            shape, values = write(call, form)
        except NotDeclaredError:
            if form == "method":
                continue
            raise
        if shape.key not in seen:
            seen.add(shape.key)
            yield shape, values


def _arguments(overload: _Overload, call: Call, form: str) -> list[tuple[str, str, Any]]:
    """The name, kind and value of each argument, in C++'s order, without trailing arguments that were not given."""
    parameters = overload.parameters
    given = dict(zip((parameter.name for parameter in parameters), call.args, strict=False)) | call.kwargs
    if overload.has_options and given.get("pin_memory") is False:
        del given["pin_memory"]  # the bindings always pass it
    options = {name for name in OPTIONS if overload.has_options and given.get(name) is not None}
    # Without a device, the call uses the CPU, which is the only device here.
    if form == "typed" and "device" in options <= {"dtype", "device"} and given["device"] == torch.device("cpu"):
        options.discard("device")
        del given["device"]
    # A dtype converts to TensorOptions. With other options, the call means C++'s signature with separate options, which
    # has no defaults.
    apart = bool(options - {"dtype"})
    count = max((i + 1 for i, p in enumerate(parameters) if p.name in given or not p.has_default), default=0)
    if overload.overload in SPELLED_OUT:
        count = len(parameters)
    arguments = []
    for parameter in parameters[: len(parameters) if apart else count]:
        value = given.get(parameter.name, parameter.default)
        if parameter.name in OPTIONS and overload.has_options and not apart:
            if parameter.name == "dtype":
                arguments.append(("options", *(("options", None) if value is None else _dtype(value, form))))
        else:
            arguments.append((parameter.name, *_kind(parameter, value, form)))
    # Trailing options that contain nothing are left out.
    if arguments and arguments[-1][1] == "options":
        arguments.pop()
    return arguments


# The number of each element type in C++.
DTYPES = {
    getattr(torch, name): number
    for number, name in enumerate(
        [
            "uint8",
            "int8",
            "int16",
            "int32",
            "int64",
            "float16",
            "float32",
            "float64",
            "complex32",
            "complex64",
            "complex128",
            "bool",
        ]
    )
} | {torch.bfloat16: 15}

BY_NUMBER = {number: dtype for dtype, number in DTYPES.items()}  # defaults in schemas are numbers

# C++ types of plain parameters by type in the schema, and of numbers for a Scalar by Python type.
PLAIN = {"int": "int64_t", "float": "double", "bool": "cbool"}
NUMBERS = {bool: "cbool", int: "int64_t", float: "double", complex: "double complex"}
VECTORS = {"List[int]": "ints", "List[float]": "doubles", "List[Tensor]": "tensors"}


def _kind(parameter: _Parameter, value: Any, form: str) -> tuple[str, Any]:
    """The kind of an argument, and the value that the compiled function gets."""
    if value is None and (parameter.optional or parameter.type == "Tensor"):
        return "None", None
    if isinstance(value, torch.Tensor):
        return "tensor", value
    if parameter.type in ("Tensor", "number"):  # in C++, a number in place of a tensor is a Scalar
        return NUMBERS[type(value)], value
    if parameter.type in PLAIN:
        return PLAIN[parameter.type], value
    if parameter.type == "str":
        return "bytes", value.encode()
    if parameter.type == "ScalarType":
        return _dtype(BY_NUMBER.get(value, value), form)
    if parameter.type == "Device" and form == "typed":
        return "device", str(value).encode()
    if parameter.type == "List[Optional[Tensor]]":
        return "optional tensors", value
    if parameter.type == "List[bool]" and parameter.length:
        return f"bools{parameter.length}", value
    if form == "typed" and parameter.type == "List[int]" and parameter.length == 1 and len(value) == 1:
        return "int64_t", value[0]  # as in Python, a number may replace a list of fixed length
    if form == "typed" and parameter.type in VECTORS:
        return VECTORS[parameter.type], value
    return "object", value


def _dtype(value: torch.dtype, form: str) -> tuple[str, Any]:
    return ("dtype", DTYPES[value]) if form == "typed" else ("object", value)
