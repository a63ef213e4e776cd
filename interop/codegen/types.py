"""How each C++ type of ATen's surface is spelled in Cython: one table for parameters, one for results.

A parameter's spelling is what a caller may pass, not the exact type, wherever C++ converts implicitly: a list
parameter is a ``const vector[T]&`` (to which an ArrayRef poses as a subclass, see ``pxd/c10/util/ArrayRef.pxd``), a
string a ``const char*``, an optional its value.
"""

import re


class UnknownTypeError(Exception):
    """A C++ type that no table has. The generator stops, because leaving a function out silently is a defect."""


NUMBERS = {
    "bool": "cbool",
    "double": "double",
    "int64_t": "int64_t",
    "at::DeviceIndex": "DeviceIndex",
}

VALUES = NUMBERS | {
    "at::Device": "Device",
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

# `const T&` is spelled by a name: Cython builds a scope for each `const T` that it reads, thousands of times.
PARAMETERS = VALUES | {
    "const at::Tensor &": "CTensor&",
    "at::Tensor &": "Tensor&",
    "const at::Scalar &": "CScalar&",
    "at::IntArrayRef": "IntList",
    "at::OptionalIntArrayRef": "IntList",
    "at::TensorList": "TensorList",
    "const at::ITensorListRef &": "TensorList",
    "at::ArrayRef<at::Scalar>": "ScalarList",
    "at::ArrayRef<double>": "DoubleList",
    "const c10::List<::std::optional<at::Tensor>> &": "OptionalTensorList",
    "::std::array<bool,2>": "BoolArray2",
    "::std::array<bool,3>": "BoolArray3",
    "::std::array<bool,4>": "BoolArray4",
    "c10::string_view": "const char*",
    "at::Stream": "Stream",
    # Named tensors, up to torch 2.12.
    "at::Dimname": "Dimname",
    "at::DimnameList": "DimnameList",
}


def parameter(cpp: str) -> str:
    """The Cython type of a parameter of C++ type `cpp`."""
    if cpp in PARAMETERS:
        return PARAMETERS[cpp]
    optional = re.fullmatch(r"(const )?::std::optional<(.*)>( &)?", cpp)
    if optional:
        inner = optional[2]
        return parameter(f"const {inner} &" if optional[1] and inner in ("at::Tensor", "at::Scalar") else inner)
    raise UnknownTypeError(cpp)


def result(cpp: str) -> str:
    """The Cython type of a function's result of C++ type `cpp`."""
    if cpp == "void":
        return "void"
    if cpp in VALUES:
        return VALUES[cpp]
    if cpp == "at::Tensor &":
        return "Tensor&"
    if cpp == "const at::Tensor &":
        return "CTensor&"
    vector = re.fullmatch(r"::std::vector<(.*)>", cpp)
    if vector:
        return f"vector[{result(vector[1])}]"
    several = re.fullmatch(r"::std::tuple<(.*)>", cpp)
    if several:
        parts = split_arguments(several[1])
        if any(part.endswith("&") for part in parts):
            # References to the out arguments, which the caller has. A tuple of references can be no variable.
            return "void"
        return f"tuple{len(parts)}[{', '.join(result(part) for part in parts)}]"
    raise UnknownTypeError(cpp)


def split_arguments(text: str) -> list[str]:
    """Splits template arguments at the outermost commas."""
    parts, depth = [""], 0
    for character in text:
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
