"""How each C++ type of ATen's surface is declared in Cython: one table for parameters, one for results."""

import re
from dataclasses import dataclass

from interop.demangle import split_arguments
from interop.errors import Error


class UnknownTypeError(Error):
    """A C++ type that is in no table. The generator stops, because it must not leave a function out silently."""


NUMERIC = frozenset(["int64_t", "double", "DeviceIndex", "IntList", "DoubleList", "ScalarList", "SymInt", "SymIntList"])


@dataclass(frozen=True)
class Kind:
    """Cython's view of one C++ parameter type."""

    cython_types: tuple[str, ...]  # the types that it can be declared as
    # Whether callers pass it in more forms than Cython's types express: a tuple, None, another object of torch. C++
    # then converts it: see ``csrc/include/interop/convert.h``.
    open: bool = False

    @property
    def takes_numbers(self) -> bool:
        """Whether a number can be passed, even in place of a list."""
        return not NUMERIC.isdisjoint(self.cython_types)

    def takes(self, cython_type: str) -> bool:
        """Whether an argument that Cython passes as a `cython_type` can be of this kind."""
        return (
            cython_type in self.cython_types
            or (cython_type == "object" and self.open)
            or (cython_type in ("int", "int64_t") and self.takes_numbers)
        )


VALUES = {
    "bool": "cbool",
    "double": "double",
    "int64_t": "int64_t",
    "at::Device": "Device",
    "at::DeviceIndex": "DeviceIndex",
    "at::Generator": "Generator",
    "at::Layout": "Layout",
    "at::MemoryFormat": "MemoryFormat",
    "at::QScheme": "QScheme",
    "at::Scalar": "Scalar",
    "at::ScalarType": "ScalarType",
    "at::Storage": "Storage",
    "at::Tensor": "Tensor",
    "at::TensorOptions": "TensorOptions",
    "c10::SymInt": "SymInt",
    "c10::SymBool": "SymBool",
}

TENSOR = "const at::Tensor &"
SCALAR = "const at::Scalar &"
STABLE_SCALAR = "const c10::Scalar &"
"""The same type under another name, for stable modules, which have no symbolic numbers."""

# Without "int", Cython would pass an int as a bool, which it ranks closer to int than int64_t.
_NUMBERS = ("CScalar&", "double", "int64_t", "int", "cbool", "double complex", "float complex")

# `const T` has a typedef, because Cython builds a scope for each `const T` that it reads, thousands of times.
PARAMETERS = {cpp: Kind((cython,)) for cpp, cython in VALUES.items()} | {
    TENSOR: Kind(("CTensor&",)),
    "at::Device": Kind(("Device",), open=True),
    "at::ScalarType": Kind(("ScalarType",), open=True),
    "at::Tensor &": Kind(("Tensor&",)),
    # Not their base Symbolic, with which Cython finds at.where(condition, x, n) ambiguous for a SymInt n.
    SCALAR: Kind((*_NUMBERS, "SymInt", "SymFloat"), open=True),
    STABLE_SCALAR: Kind(_NUMBERS, open=True),
    "at::TensorOptions": Kind(("TensorOptions", "ScalarType"), open=True),
    "at::IntArrayRef": Kind(("IntList",), open=True),
    "at::OptionalIntArrayRef": Kind(("IntList",), open=True),
    "c10::SymInt": Kind(("SymInt",), open=True),
    "c10::SymIntArrayRef": Kind(("SymIntList",), open=True),
    "at::OptionalSymIntArrayRef": Kind(("SymIntList",), open=True),
    "at::TensorList": Kind(("TensorList",), open=True),
    "const at::ITensorListRef &": Kind(("TensorList",), open=True),
    "at::ArrayRef<at::Scalar>": Kind(("ScalarList",), open=True),
    "at::ArrayRef<double>": Kind(("DoubleList",), open=True),
    "::std::array<bool,2>": Kind(("BoolArray2",), open=True),
    "::std::array<bool,3>": Kind(("BoolArray3",), open=True),
    "::std::array<bool,4>": Kind(("BoolArray4",), open=True),
    "const c10::List<::std::optional<at::Tensor>> &": Kind(("OptionalTensorList",)),
    "c10::string_view": Kind(("const char*",)),
    "at::Stream": Kind(("Stream",)),
    # Named tensors, up to torch 2.12.
    "at::Dimname": Kind(("Dimname",)),
    "at::DimnameList": Kind(("DimnameList",)),
}

_OPTIONAL = re.compile(r"(const )?::std::optional<(.*)>( &)?")


def parameter(cpp: str) -> Kind:
    """The declarations of a parameter of C++ type `cpp`."""
    if cpp in PARAMETERS:
        return PARAMETERS[cpp]
    optional = _OPTIONAL.fullmatch(cpp)
    if optional:
        inner = optional[2]
        kind = parameter(f"const {inner} &" if f"const {inner} &" in PARAMETERS else inner)
        return Kind(kind.cython_types, open=True)
    raise UnknownTypeError(cpp)


def is_truth_value(cpp: str) -> bool:
    """Whether True differs here from the number 1, which is how Cython passes it."""
    return cpp in ("bool", "::std::optional<bool>")


def plain(cpp: str) -> str:
    """`cpp` without const and reference."""
    return cpp.removeprefix("const ").removesuffix(" &")


def result(cpp: str) -> str:
    """The Cython type of a function's result of C++ type `cpp`."""
    if cpp == "void":
        return "void"
    if cpp in VALUES:
        return VALUES[cpp]
    if cpp == "at::Tensor &":
        return "Tensor&"
    if cpp == TENSOR:
        return "Tensor"  # a new reference: for a const reference, Cython makes an uninitialised const variable
    vector = re.fullmatch(r"::std::vector<(.*)>", cpp)
    if vector:
        return f"vector[{result(vector[1])}]"
    several = re.fullmatch(r"::std::tuple<(.*)>", cpp)
    if several:
        parts = split_arguments(several[1])
        if any(part.endswith("&") for part in parts):
            # References to the out arguments, which the caller has. A variable cannot be a tuple of references.
            return "void"
        return f"tuple{len(parts)}[{', '.join(result(part) for part in parts)}]"
    raise UnknownTypeError(cpp)
