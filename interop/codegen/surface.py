"""Read torch's own description of its operators, and derive the declarations of ATen's C++ functions and methods."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from keyword import kwlist
from pathlib import Path

import torchgen
from torchgen.api import cpp
from torchgen.api.translate import translate
from torchgen.api.types import CppSignature, CppSignatureGroup, DispatcherSignature
from torchgen.context import native_function_manager
from torchgen.gen import parse_native_yaml
from torchgen.model import NativeFunction, Variant

from interop.codegen import stable, types

# Types that Cython cannot hold or pass, each with the reason. Functions with such a type are not declared.
LEFT_OUT = {
    "Dimname": "named tensors, which torch 2.13 removed",
    "QScheme": "an enum of deprecated eager quantization",
    "Stream": "has no default constructor, which a Cython variable needs",
}

STABLE_LEFT_OUT = dict.fromkeys(["Storage", "SymInt", "SymBool"], "torch's C interface has none")

CONVERSIONS = ("to", "_to_copy")
"""Functions with options that make no tensor of their own. For them ATen rejects options with `requires_grad`."""

_CYTHONS = (
    "by cdef cimport cpdef ctypedef enum exec extern gil include inline nogil print public readonly struct union "
    "DEF ELIF ELSE IF"
)
RESERVED = frozenset([*kwlist, *_CYTHONS.split()])
"""Reserved words of Cython, some of which are also names in ATen."""


@dataclass(frozen=True)
class Parameter:
    """One parameter: its C++ type, its name in Cython, and whether C++ has a default for it."""

    cpp: str
    name: str
    has_default: bool

    @property
    def kind(self) -> types.Kind:
        """How it can be declared in Cython."""
        return types.parameter(self.cpp)


@dataclass(frozen=True)
class Declaration:
    """One C++ signature, and our C++ wrapper that calls it and has no overloads."""

    name: str
    result: str  # in C++
    parameters: tuple[Parameter, ...]  # for a method, without the tensor itself
    schema: str
    wrapper: str
    definition: str  # of the wrapper
    self_at: int | None  # for a method, the tensor's position in the wrapper
    header: str  # ATen's header for the operator


@dataclass
class Surface:
    """All declarations for one torch, and the schemas left out, each with the reason."""

    functions: list[Declaration]
    methods: list[Declaration]
    by_hand: set[str]  # schemas that torch's headers and pxd/ declare by hand
    left_out: dict[str, str]
    schemas: int


def read(*, for_stable: bool = False) -> Surface:
    """The surface of the installed torch, as ATen has it or, with `for_stable`, as `stable` calls it."""
    packaged = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native"
    parsed = parse_native_yaml(str(packaged / "native_functions.yaml"), str(packaged / "tags.yaml"))
    surface = Surface([], [], set(), {}, len(parsed.native_functions))
    for function in parsed.native_functions:
        if function.manual_cpp_binding:
            _note_by_hand(function, surface)
            continue
        with native_function_manager(function):
            for method, target in ((False, surface.functions), (True, surface.methods)):
                for signature in _signatures(function, method):
                    declaration = _declare(function, signature)
                    if for_stable:
                        declaration = stable.declaration(function, signature, declaration)
                    declaration = _with_requires_grad(declaration)
                    reason = _reason_to_leave_out(declaration, LEFT_OUT | (STABLE_LEFT_OUT if for_stable else {}))
                    if reason:
                        surface.left_out[str(function.func)] = reason
                    else:
                        target.append(declaration)
    return surface


def _signatures(function: NativeFunction, method: bool) -> Iterator[CppSignature]:
    """The C++ signatures that torch generates for one entry, as a function or as a method."""
    if (Variant.method if method else Variant.function) not in function.variants:
        return
    group = CppSignatureGroup.from_native_function(function, method=method)
    yield from group.signatures()


def _note_by_hand(function: NativeFunction, surface: Surface) -> None:
    surface.by_hand.add(str(function.func))


def _declare(function: NativeFunction, signature: CppSignature) -> Declaration:
    operator = function.func.name.unambiguous_name()
    wrapper = operator + ("_symint" if signature.symint else "") + ("_faithful" if signature.faithful else "")
    parameters = tuple(
        Parameter(binding.type, _safe(binding.name), binding.default is not None) for binding in signature.arguments()
    )
    self_at = None
    if signature.method:
        signature = replace(signature, method=False)
        self_at = [binding.name for binding in signature.arguments()].index("self")
    arguments = translate(signature.arguments(), DispatcherSignature.from_schema(function.func).arguments())
    passed = ", ".join(argument.expr for argument in arguments)
    return Declaration(
        name=signature.name(),
        result=cpp.returns_type(function.func.returns, symint=signature.symint).cpp_type(),
        parameters=parameters,
        schema=str(function.func),
        wrapper=wrapper,
        definition=f"inline {signature.decl(name=wrapper)} {{\n  return at::_ops::{operator}::call({passed});\n}}\n",
        self_at=self_at,
        header=f"ATen/ops/{function.root_name}_ops.h",
    )


def _with_requires_grad(declaration: Declaration) -> Declaration:
    """`declaration`; if it makes a tensor by options, it heeds their `requires_grad`, which ATen ignores or rejects."""
    takes_options = any(parameter.cpp == "at::TensorOptions" for parameter in declaration.parameters)
    if not takes_options or declaration.name in CONVERSIONS:
        return declaration
    before = "  const bool requires_grad = options.requires_grad();\n  options = options.requires_grad(false);\n"
    after = (
        "at::Tensor made = \\1;\n  if (requires_grad) {\n    made.set_requires_grad(true);\n  }\n  return made;\n}\n"
    )
    start, brace, body = declaration.definition.partition("{\n")
    return replace(declaration, definition=start + brace + before + re.sub(r"return (.*);\n}\n$", after, body))


def _reason_to_leave_out(declaration: Declaration, reasons: dict[str, str]) -> str | None:
    listed = (cython_type for parameter in declaration.parameters for cython_type in parameter.kind.cython_types)
    text = " ".join([types.result(declaration.result), *listed])
    for name, reason in reasons.items():
        if name in text:
            return f"{name}: {reason}"
    return None


def _safe(name: str) -> str:
    return name + "_" if name in RESERVED else name
