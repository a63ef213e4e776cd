"""What is read out of Python objects, and the ways to read it."""

from collections.abc import Callable

import numpy as np
import torch

from experiments.harness import building
from interop.cli import CommandError

NAME = "unpack"
OBJECTS = {"torch.Tensor": "tensor", "numpy.dtype": "dtype", "complex": "complex"}
"""The types, and what the functions are called that read one of its objects."""
READ = {"torch.Tensor": torch.Tensor.numel, "numpy.dtype": lambda d: d.itemsize, "complex": lambda z: z.real}
"""What they read."""
WAYS = {
    "mirror": "unpack_mirror",
    "header": "unpack_header",
    "function": "unpack_functions",
    "attribute": "unpack_attributes",
    "C++": "unpack_cpp",
}
"""The ways, and their modules."""
VALUES = {"torch.Tensor": torch.ones(2, 3), "numpy.dtype": np.dtype("f8"), "complex": 1.5 + 2.5j}
"""The objects that the timed functions read."""


def functions() -> dict[tuple[str, str], Callable[[object], int | float]]:
    """The functions, by what they are given and by way."""
    modules = {way: building.native(NAME, module) for way, module in WAYS.items()}
    return {(what, way): getattr(modules[way], f"read_{name}") for what, name in OBJECTS.items() for way in WAYS}


def check() -> None:
    """Make sure that all ways read the same, and that they mean the same C++ tensor."""
    several = {
        "torch.Tensor": [torch.ones(2, 3), torch.nn.Parameter(torch.ones(5)), torch.empty(0), torch.tensor(1)],
        "numpy.dtype": [np.dtype(code) for code in ("f8", ">i2", "S7", "O", "c16", "i4,f8")],
        "complex": [1.5 + 2.5j, complex("nan+1j"), complex(float("-inf"), -0.0)],
    }
    for (what, way), function in functions().items():
        for value in several[what]:
            got, expected = repr(function(value)), repr(READ[what](value))
            if got != expected:
                raise CommandError(f"{what}, {way}: {got} instead of {expected}")
    for tensor in several["torch.Tensor"]:
        found = identities(tensor)
        (field, impl), (handle, same) = found["mirror"], found["function"]
        if found["header"] != (field, impl) or same != impl or handle == field:
            raise CommandError(f"the ways do not mean the same C++ tensor: {found}")


def identities(tensor: torch.Tensor) -> dict[str, tuple[int, int]]:
    """Where the at::Tensor of a Python tensor is, and the TensorImpl that it points to, by way.

    A mirror and the header find the field of the Python object. The handle of the C shim is another at::Tensor.
    """
    return {way: building.native(NAME, WAYS[way]).identity(tensor) for way in ("mirror", "header", "function")}


def layout() -> dict[str, dict]:
    """What the headers say of each object: its fields with offset and size in bytes, and the size of its type."""
    fields = building.native(NAME, "unpack_cpp").layout()
    return {
        what: {"fields": [list(field) for field in fields[what]], "size": type(value).__basicsize__}
        for what, value in VALUES.items()
    }
