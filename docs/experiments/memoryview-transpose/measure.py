"""Measures ways to give a typed memoryview in a class other axes, and to get it back: nanoseconds and instructions."""

from collections.abc import Callable
from types import ModuleType

import numpy as np
import torch

from experiments.harness import building, calls
from interop.build import CXX_FLAGS
from interop.cli import CommandError

NAME = "memoryview-transpose"
FLAGS = [*CXX_FLAGS, "-O3", "-g0"]
SHAPE, ORDER = (2, 4, 5, 3), (0, 3, 1, 2)
ASSIGN, ARRAY, TENSOR = "assign with other axes", "array of the member", "tensor of the member"
METHODS = {  # what is done, and how: the method that does it
    ("call a method", "that does nothing"): "nothing",
    (ASSIGN, "interop.memview.permute"): "by_permute",
    (ASSIGN, "v.T, all axes reversed"): "by_dot_t",
    (ASSIGN, "numpy.asarray(v).transpose"): "by_numpy",
    (ASSIGN, "v.base.transpose"): "by_base",
    (ASSIGN, "torch permute, as_memoryview"): "by_torch",
    (ARRAY, "numpy.asarray"): "array",
    (TENSOR, "interop.from_buffer"): "tensor_by_interop",
    (TENSOR, "torch.from_numpy(numpy.asarray)"): "tensor_by_numpy",
}


def module() -> ModuleType:
    """The compiled class."""
    return building.native(NAME, "images")


def check() -> None:
    """Raise CommandError unless each way gives the axes that it should, in the memory that the class was given."""
    for source in (np.arange(120, dtype=np.float32).reshape(SHAPE), torch.arange(120.0).view(SHAPE)):
        given = np.asarray(source)
        for (what, how), method in METHODS.items():
            # Of a tensor's memoryview the base is no array, so it has no transpose().
            if what != ASSIGN or (method == "by_base" and given is not source):
                continue
            images = module().Images(source)
            getattr(images, method)()
            expected = given.T if method == "by_dot_t" else given.transpose(ORDER)
            for back in (images.array(), images.tensor_by_interop().numpy(), images.tensor_by_numpy().numpy()):
                same = back.ctypes.data == given.ctypes.data and back.strides == expected.strides
                if not (same and np.array_equal(back, expected)):
                    raise CommandError(f"{how}: the member is not the array with other axes")


def times(rounds: int, number: int, shown: Callable[[str], None]) -> dict[str, dict[str, dict]]:
    """Nanoseconds of each call, by what it does and how: see `calls.times`."""
    images = module().Images(np.ones(SHAPE, np.float32))
    timers = {key: calls.timer("f()", {"f": getattr(images, method)}) for key, method in METHODS.items()}
    return calls.times(timers, rounds, number, shown)


def instructions(count: int = 5_000) -> dict[str, dict[str, float]]:
    """Instructions of each call, and of the end of what it made: see `calls.instructions`."""
    return calls.instructions(NAME, METHODS, count)


def run_below_callgrind(count: int) -> None:
    """Make each call `count` times, and have its instructions written out."""
    images = module().Images(np.ones(SHAPE, np.float32))
    for method in METHODS.values():
        calls.run_counted(getattr(type(images), method), [images], count)
