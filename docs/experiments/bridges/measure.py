"""Measures conversions between tensors, arrays and buffers of 1 to 4 dimensions: nanoseconds and instructions."""

import inspect
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

import interop
from interop.build import CXX_FLAGS
from interop.experiments import building, calls

NAME = "bridges"
FLAGS = [*CXX_FLAGS, "-O3", "-g0"]
SHAPES = {1: (3,), 2: (2, 3), 3: (2, 3, 4), 4: (2, 3, 4, 5)}
CAPSULES = "capsules"
"""Stands for another capsule in each call, all made beforehand: a capsule can be used once."""
CALLS = {  # what is done, and how: the function, and its argument
    ("tensor from array", "torch"): ("torch.from_numpy", "a"),
    ("tensor from array", "interop"): ("interop.from_numpy", "a"),
    ("array from tensor", "torch"): ("torch.Tensor.numpy", "t"),
    ("array from tensor", "interop"): ("interop.to_numpy", "t"),
    ("memoryview", "of an array"): ("memoryview", "a"),
    ("memoryview", "of a tensor"): ("memoryview", "t"),
    ("memoryview", "as_memoryview"): ("interop.as_memoryview", "t"),
    ("typed memoryview", "of an array"): ("bridges_typed.rows{ndim}", "a"),
    ("typed memoryview", "of a tensor"): ("bridges_typed.rows{ndim}", "t"),
    ("tensor from bytearray", "torch"): ("frombuffer", "b"),
    ("tensor from bytearray", "interop"): ("interop.from_buffer", "b"),
    ("array by DLPack", "torch"): ("torch.from_dlpack", "a"),
    ("array by DLPack", "interop"): ("interop.from_dlpack", "a"),
    ("tensor by DLPack", "torch"): ("torch.from_dlpack", "t"),
    ("tensor by DLPack", "interop"): ("interop.from_dlpack", "t"),
    ("capsule from tensor", "torch"): ("to_dlpack", "t"),
    ("capsule from tensor", "torch, method"): ("torch.Tensor.__dlpack__", "t"),
    ("capsule from tensor", "interop"): ("interop.to_dlpack", "t"),
    ("tensor from capsule", "torch"): ("torch.from_dlpack", CAPSULES),
    ("tensor from capsule", "interop"): ("interop.from_dlpack", CAPSULES),
    ("capsule and back", "torch"): ("torch_round", "t"),
    ("capsule and back", "interop"): ("interop_round", "t"),
}
BARS = {  # what is done, how, against what, and the ratio that it must not exceed
    "tensor from array": ("interop", "torch", 0.45),
    "array from tensor": ("interop", "torch", 0.15),
    "memoryview": ("of a tensor", "of an array", 1.0),
    "typed memoryview": ("of a tensor", "of an array", 1.0),
    "array by DLPack": ("interop", "torch", 0.3),
    "tensor by DLPack": ("interop", "torch", 0.3),
    "tensor from capsule": ("interop", "torch", 0.3),
    "capsule and back": ("interop", "torch", 0.3),
}


def cases() -> list[tuple[str, str]]:
    """The calls for each number of dimensions, as they go into a result."""
    return [(f"{what}, {ndim}-d", how) for ndim in SHAPES for what, how in CALLS]


FUNCTIONS = {"frombuffer": partial(torch.frombuffer, dtype=torch.uint8), "to_dlpack": torch.utils.dlpack.to_dlpack}


def made_capsules(t, number):
    return [t.__dlpack__(max_version=(1, 0)) for _ in range(number)]


def torch_round(t):
    return torch.from_dlpack(t.__dlpack__())


def interop_round(t):
    return interop.from_dlpack(interop.to_dlpack(t))


def times(rounds: int, number: int, shown: Callable[[str], None]) -> dict[str, dict[str, dict]]:
    """Nanoseconds of each call, by what it does and how: see `calls.times`."""
    timers = {}
    names = {"interop": interop, "torch": torch, "bridges_typed": building.native(NAME, "bridges_typed")}
    names |= FUNCTIONS | {"torch_round": torch_round, "interop_round": interop_round}
    for ndim, shape in SHAPES.items():
        values = {"a": np.ones(shape, np.float32), "t": torch.ones(shape), "b": bytearray(24)}
        for (what, how), (function, argument) in CALLS.items():
            # One name for the function, so that looking up a module's attribute is not part of the call.
            bound = eval(function.format(ndim=ndim), names | {"memoryview": memoryview})
            timers[f"{what}, {ndim}-d", how] = (
                calls.timer(
                    "f(take())", {"f": bound, "made": partial(made_capsules, values["t"], number)}, "take = made().pop"
                )
                if argument == CAPSULES
                else calls.timer("f(x)", {"f": bound, "x": values[argument]})
            )
    with interop.enable_buffer_protocol():
        return calls.times(timers, rounds, number, shown)


COUNTED = """
import importlib.machinery, importlib.util
from collections import deque
from functools import partial
from itertools import repeat
import numpy as np, torch, interop
frombuffer = partial(torch.frombuffer, dtype=torch.uint8)
to_dlpack = torch.utils.dlpack.to_dlpack
loader = importlib.machinery.ExtensionFileLoader("bridges_typed", {path!r})
spec = importlib.util.spec_from_file_location("bridges_typed", {path!r}, loader=loader)
bridges_typed = importlib.util.module_from_spec(spec)
loader.exec_module(bridges_typed)
interop.enable_buffer_protocol()
{functions}
b = bytearray(24)
{loops}
"""
LOOP = """
a, t = np.ones({shape}, np.float32), torch.ones({shape})
few, many = {few}, {many}
deque(map({function}, few), 0)
torch._C._valgrind_toggle()
deque(map({function}, many), 0)
torch._C._valgrind_toggle_and_dump_stats()
"""


def instructions(count: int = 5_000) -> dict[str, dict[str, float]]:
    """Instructions of each call, and of the end of what it made: see `calls.instructions`."""

    def arguments(argument: str, number: int) -> str:
        return f"made_capsules(t, {number})" if argument == CAPSULES else f"repeat({argument}, {number})"

    loops = [
        LOOP.format(
            shape=shape,
            function=function.format(ndim=ndim),
            few=arguments(argument, 100),
            many=arguments(argument, count),
        )
        for ndim, shape in SHAPES.items()
        for function, argument in CALLS.values()
    ]
    path = building.native(NAME, "bridges_typed").__spec__.origin
    functions = "".join(map(inspect.getsource, (made_capsules, torch_round, interop_round)))
    return calls.instructions(COUNTED.format(path=path, functions=functions, loops="".join(loops)), cases(), count)
