"""Measures ways to give a typed memoryview in a class other axes, and to get it back: nanoseconds and instructions."""

from collections.abc import Callable
from types import ModuleType

import numpy as np
import torch

from interop.build import CXX_FLAGS
from interop.cli import CommandError
from interop.experiments import building, calls

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


COUNTED = """
import importlib.machinery, importlib.util
from collections import deque
from itertools import repeat
import numpy as np, torch, interop
loader = importlib.machinery.ExtensionFileLoader("images", {path!r})
spec = importlib.util.spec_from_file_location("images", {path!r}, loader=loader)
images = importlib.util.module_from_spec(spec)
loader.exec_module(images)
x = images.Images(np.ones({shape}, np.float32))
{loops}
"""
LOOP = """
deque(map(images.Images.{method}, repeat(x, 100)), 0)
torch._C._valgrind_toggle()
deque(map(images.Images.{method}, repeat(x, {count})), 0)
torch._C._valgrind_toggle_and_dump_stats()
"""


def instructions(count: int = 5_000) -> dict[str, dict[str, float]]:
    """Instructions of each call, and of the end of what it made: see `calls.instructions`."""
    loops = "".join(LOOP.format(method=method, count=count) for method in METHODS.values())
    path = module().__spec__.origin
    return calls.instructions(COUNTED.format(path=path, shape=SHAPE, loops=loops), list(METHODS), count)
