"""Measures conversions between tensors, arrays and buffers of 1 to 4 dimensions: nanoseconds and instructions."""

from collections.abc import Callable
from functools import partial
from itertools import repeat

import numpy as np
import torch

import interop
from experiments.harness import building, calls
from interop.build import CXX_FLAGS

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


def made_capsules(t, number):
    return [t.__dlpack__(max_version=(1, 0)) for _ in range(number)]


def torch_round(t):
    return torch.from_dlpack(t.__dlpack__())


def interop_round(t):
    return interop.from_dlpack(interop.to_dlpack(t))


def names() -> dict:
    """What the functions above refer to."""
    return {
        "interop": interop,
        "torch": torch,
        "memoryview": memoryview,
        "bridges_typed": building.native(NAME, "bridges_typed"),
        "frombuffer": partial(torch.frombuffer, dtype=torch.uint8),
        "to_dlpack": torch.utils.dlpack.to_dlpack,
        "torch_round": torch_round,
        "interop_round": interop_round,
    }


def bound() -> dict[tuple[str, str], tuple[Callable, object, torch.Tensor]]:
    """Each call's function and argument, and a tensor to make capsules of."""
    found = {}
    for ndim, shape in SHAPES.items():
        values = {"a": np.ones(shape, np.float32), "t": torch.ones(shape), "b": bytearray(24), CAPSULES: CAPSULES}
        for (what, how), (function, argument) in CALLS.items():
            found[f"{what}, {ndim}-d", how] = eval(function.format(ndim=ndim), names()), values[argument], values["t"]
    return found


def times(rounds: int, number: int, shown: Callable[[str], None]) -> dict[str, dict[str, dict]]:
    """Nanoseconds of each call, by what it does and how: see `calls.times`."""
    timers = {
        # One name for the function, so that looking up a module's attribute is not part of the call.
        key: calls.timer("f(take())", {"f": function, "made": partial(made_capsules, t, number)}, "take = made().pop")
        if argument is CAPSULES
        else calls.timer("f(x)", {"f": function, "x": argument})
        for key, (function, argument, t) in bound().items()
    }
    with interop.enable_buffer_protocol():
        return calls.times(timers, rounds, number, shown)


def instructions(count: int = 5_000) -> dict[str, dict[str, float]]:
    """Instructions of each call, and of the end of what it made: see `calls.instructions`."""
    return calls.instructions(NAME, cases(), count)


def run_below_callgrind(count: int) -> None:
    """Make each call `count` times, and have its instructions written out."""
    with interop.enable_buffer_protocol():
        for function, argument, t in bound().values():
            given = partial(made_capsules, t) if argument is CAPSULES else partial(repeat, argument)
            calls.run_iterators(*(map(function, given(number)) for number in (calls.UNCOUNTED, count)))
