"""The ways to call compiled code, by the names that tables, plots and results call them."""

from collections.abc import Callable
from types import ModuleType

import torch

from experiments.harness import building
from interop.build import CXX_FLAGS
from interop.cli import CommandError

NAME = "crossing"
FLAGS = [*CXX_FLAGS, "-O3", "-g0"]
"""The flags of the modules that are called. Binding tools consist of inlined templates, which -O3 makes fastest."""

COUNTS = {"1 tensor": 1, "3 tensors": 3, "8 tensors": 8}
"""The number of tensors that a function takes. It returns the number of all their elements."""

Functions = tuple[Callable[..., int], ...]


def _compiled(module: str) -> Functions:
    functions = building.native(NAME, module)
    return functions.one, functions.three, functions.eight


def _tvm_ffi() -> Functions:
    import tvm_ffi

    module = tvm_ffi.load_module(str(building.native_path(NAME, "crossing_tvm_ffi")))
    return module.one, module.three, module.eight


def _torch_ops() -> Functions:
    torch.ops.load_library(building.native_path(NAME, "crossing_torch_ops"))
    return torch.ops.crossing.one, torch.ops.crossing.three, torch.ops.crossing.eight


def _python() -> ModuleType:
    from . import crossing_python

    return crossing_python


def _checked_exchange() -> Functions:
    module = building.native(NAME, "crossing_exchange")
    return module.checked_one, module.checked_three, module.checked_eight


WAYS: dict[str, tuple[str, Callable[[], Functions]]] = {  # what must be installed, and what gives the functions
    "Cython": ("", lambda: _compiled("crossing_cython")),
    "pybind11": ("", lambda: _compiled("crossing_pybind11")),  # torch brings its own
    "nanobind": ("nanobind", lambda: _compiled("crossing_nanobind")),
    "tvm-ffi": ("tvm_ffi", _tvm_ffi),
    "ctypes": ("", lambda: _python().by_ctypes(building.native_path(NAME, "crossing_c"))),
    "cffi": ("cffi", lambda: _python().by_cffi(building.native(NAME, "crossing_cffi"))),
    "torch.ops": ("", _torch_ops),
    "custom_op": ("", lambda: _python().CUSTOM_OPS),
    "DLPack exchange": ("", lambda: _compiled("crossing_exchange")),
    "DLPack exchange, checked": ("", _checked_exchange),
}


def tools() -> dict[str, str]:
    """The versions of the packages that the ways need, as far as they are installed."""
    found = {way: building.tool_version(package) for way, (package, _) in WAYS.items() if package}
    return {way: version for way, version in found.items() if version}


def missing() -> list[str]:
    """The ways that need a package that is not installed."""
    return [way for way, (package, _) in WAYS.items() if package and way not in tools()]


def functions() -> dict[tuple[str, str], Callable[..., int]]:
    """The functions of tensors, by what they are given and by way."""
    absent = missing()
    found = {way: get() for way, (_, get) in WAYS.items() if way not in absent}
    return {(what, way): found[way][index] for index, what in enumerate(COUNTS) for way in found}


def tensors(count: int) -> list[torch.Tensor]:
    """`count` tensors of 1, 2, 4, ... elements. A sum of their sizes shows which tensors it includes."""
    return [torch.ones(1 << index) for index in range(count)]


def check() -> None:
    """Make sure that all functions give the same."""
    for (what, way), function in functions().items():
        expected = (1 << COUNTS[what]) - 1
        got = function(*tensors(COUNTS[what]))
        if type(got) is not int or got != expected:
            raise CommandError(f"{what}, {way}: the result is {got!r}, not {expected}")
