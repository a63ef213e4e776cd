"""Measures conversions between tensors, arrays and buffers of 1 to 4 dimensions: nanoseconds and instructions."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
FRESH, EXPORTED = "fresh", "exported"
"""Stand for another tensor in each call, all made beforehand: never exported before, or once."""
CALLS = {  # what is done, and how: the function, and its argument
    ("tensor from array", "torch"): ("torch.from_numpy", "a"),
    ("tensor from array", "interop"): ("interop.from_numpy", "a"),
    ("tensor from array", "METH_FASTCALL"): ("bridges_cheapest.from_numpy", "a"),
    ("tensor from array", "cheapest"): ("bridges_cheapest.owned", "a"),
    ("tensor from array", "cheapest, unowned"): ("bridges_cheapest.unowned", "a"),
    ("array from tensor", "torch"): ("torch.Tensor.numpy", "t"),
    ("array from tensor", "interop"): ("interop.to_numpy", "t"),
    ("array from tensor", "cheapest"): ("bridges_cheapest.array", "t"),
    ("array from tensor, first export", "torch"): ("torch.Tensor.numpy", FRESH),
    ("array from tensor, first export", "interop"): ("interop.to_numpy", FRESH),
    ("array from tensor, second export", "torch"): ("torch.Tensor.numpy", EXPORTED),
    ("array from tensor, second export", "interop"): ("interop.to_numpy", EXPORTED),
    ("memoryview", "of an array"): ("memoryview", "a"),
    ("memoryview", "of a tensor"): ("memoryview", "t"),
    ("memoryview", "as_memoryview"): ("interop.as_memoryview", "t"),
    ("memoryview", "cheapest"): ("memoryview", "b"),
    ("typed memoryview", "of an array"): ("bridges_typed.rows{ndim}", "a"),
    ("typed memoryview", "of a tensor"): ("bridges_typed.rows{ndim}", "t"),
    ("tensor from bytearray", "torch"): ("frombuffer", "b"),
    ("tensor from bytearray", "interop"): ("interop.from_buffer", "b"),
    ("array by DLPack", "torch"): ("torch.from_dlpack", "a"),
    ("array by DLPack", "interop"): ("interop.from_dlpack", "a"),
    ("tensor by DLPack", "torch"): ("torch.from_dlpack", "t"),
    ("tensor by DLPack", "interop"): ("interop.from_dlpack", "t"),
    ("tensor by DLPack", "cheapest"): ("bridges_cheapest.alias", "t"),
    ("capsule from tensor", "torch"): ("to_dlpack", "t"),
    ("capsule from tensor", "torch, method"): ("torch.Tensor.__dlpack__", "t"),
    ("capsule from tensor", "interop"): ("interop.to_dlpack", "t"),
    ("capsule from tensor", "cheapest"): ("bridges_cheapest.capsule", "t"),
    ("tensor from capsule", "torch"): ("torch.from_dlpack", CAPSULES),
    ("tensor from capsule", "interop"): ("interop.from_dlpack", CAPSULES),
    ("capsule and back", "torch"): ("torch_round", "t"),
    ("capsule and back", "interop"): ("interop_round", "t"),
    ("two tensors to an array", "by hand"): ("by_hand", "t"),
    ("two tensors to an array", "with_arrays"): ("by_wrapper", "t"),
    ("two tensors to an array", "with_arrays, one by keyword"): ("by_keyword", "t"),
    ("two numbers of owners", "with a lock"): ("bridges_cheapest.counted", "t"),
    ("two numbers of owners", "without"): ("bridges_cheapest.uncounted", "t"),
    ("the protocol in a block", "on already"): ("block", "t"),
}
STATEMENTS = {  # what is timed as code that is in no function, so that its instructions are not counted
    ("array from tensor, by attribute", "torch"): "x.numpy()",
    ("array from tensor, by attribute", "interop"): "interop.to_numpy(x)",
    ("two tensors to an array", "the conversions alone"): "to_numpy(x); to_numpy(other); from_numpy(kept)",
}
THREAD = ("the protocol in a block", "on already, second thread")
OFF = ("the protocol in a block", "off before")
"""Turns the protocol on and off. It is timed by itself, since all others are timed while the protocol is on."""
BARS = {  # what is done, how, against what, and the ratio that it must not exceed
    "tensor from array": ("interop", "torch", 0.48),
    "array from tensor": ("interop", "torch", 0.15),
    "memoryview": ("of a tensor", "of an array", 0.95),
    "typed memoryview": ("of a tensor", "of an array", 1.0),
    "array by DLPack": ("interop", "torch", 0.25),
    "tensor by DLPack": ("interop", "torch", 0.25),
    "tensor from capsule": ("interop", "torch", 0.5),
    "capsule and back": ("interop", "torch", 0.25),
    "two tensors to an array": ("with_arrays", "the conversions alone", 2.0),
}
COMPARED = [  # what is done, how, and against what: ratios that explain others
    ("tensor from array", "METH_FASTCALL", "interop"),
    ("array from tensor, by attribute", "interop", "torch"),
    ("array from tensor, first export", "interop", "torch"),
    ("array from tensor, second export", "interop", "torch"),
    ("two tensors to an array", "with_arrays", "by hand"),
    ("two tensors to an array", "with_arrays, one by keyword", "by hand"),
]
LIMITS = {("the protocol in a block", "on already"): 300, THREAD: 300, OFF: 3000}
"""The nanoseconds that a call must not exceed."""
CHEAPEST = {  # a function of ours, and the cheapest one that it is compared with
    "interop.from_numpy": (("tensor from array", "interop"), ("tensor from array", "cheapest")),
    "interop.from_buffer": (("tensor from bytearray", "interop"), ("tensor from array", "cheapest")),
    "interop.from_dlpack of an array": (("array by DLPack", "interop"), ("tensor from array", "cheapest")),
    "interop.from_dlpack of a capsule": (
        ("tensor from capsule", "interop"),
        ("tensor from array", "cheapest, unowned"),
    ),
    "interop.from_dlpack of a tensor": (("tensor by DLPack", "interop"), ("tensor by DLPack", "cheapest")),
    "interop.to_numpy": (("array from tensor", "interop"), ("array from tensor", "cheapest")),
    "memoryview of a tensor": (("memoryview", "of a tensor"), ("memoryview", "cheapest")),
    "interop.as_memoryview": (("memoryview", "as_memoryview"), ("memoryview", "cheapest")),
    "interop.to_dlpack": (("capsule from tensor", "interop"), ("capsule from tensor", "cheapest")),
}
EVERY_RANK = {what for what, _ in CALLS} - {
    "two tensors to an array",
    "two numbers of owners",
    "the protocol in a block",
    "array from tensor, first export",
    "array from tensor, second export",
}
EXPLAINING = {"cheapest", "cheapest, unowned", "METH_FASTCALL"}
"""The ways that explain what others cost. They are measured with one dimension, and not plotted."""


def ranks(what: str, how: str) -> list[int]:
    """The numbers of dimensions that a call is measured with."""
    return [n for n in SHAPES if n == 1 or (what in EVERY_RANK and how not in EXPLAINING)]


def cases() -> list[tuple[str, str]]:
    """The calls for each number of dimensions, as they go into a result."""
    return [(f"{what}, {ndim}-d", how) for ndim in SHAPES for what, how in CALLS if ndim in ranks(what, how)]


def made_capsules(t, number):
    return [t.__dlpack__(max_version=(1, 0)) for _ in range(number)]


def made_tensors(t, number):
    return [torch.ones_like(t) for _ in range(number)]


def exported_tensors(t, number):
    tensors = made_tensors(t, number)
    for tensor in tensors:
        interop.to_numpy(tensor)
    return tensors


MADE = {CAPSULES: made_capsules, FRESH: made_tensors, EXPORTED: exported_tensors}


def is_made(argument: object) -> bool:
    """Whether each call needs another argument."""
    return isinstance(argument, str)


def torch_round(t):
    return torch.from_dlpack(t.__dlpack__())


def interop_round(t):
    return interop.from_dlpack(interop.to_dlpack(t))


KEPT = np.ones(3, np.float32)


def kept(x, y):
    return KEPT


OTHER, WRAPPED = torch.ones(3), interop.with_arrays(kept)


# The names are bound as in a function that is written for speed.
def by_hand(t, to_numpy=interop.to_numpy, from_numpy=interop.from_numpy, function=kept, other=OTHER):
    return from_numpy(function(to_numpy(t), to_numpy(other)))


def by_wrapper(t, function=WRAPPED, other=OTHER):
    return function(t, other)


def by_keyword(t, function=WRAPPED, other=OTHER):
    return function(t, y=other)


def block(_):
    with interop.enable_buffer_protocol():
        pass


def names() -> dict:
    """What the functions above refer to."""
    return {
        "interop": interop,
        "torch": torch,
        "memoryview": memoryview,
        "bridges_cheapest": building.native(NAME, "bridges_cheapest"),
        "bridges_typed": building.native(NAME, "bridges_typed"),
        "frombuffer": partial(torch.frombuffer, dtype=torch.uint8),
        "to_dlpack": torch.utils.dlpack.to_dlpack,
        "torch_round": torch_round,
        "interop_round": interop_round,
        "by_hand": by_hand,
        "by_wrapper": by_wrapper,
        "by_keyword": by_keyword,
        "block": block,
    }


def bound() -> dict[tuple[str, str], tuple[Callable, object, torch.Tensor]]:
    """Each call's function and argument, and a tensor to make capsules of."""
    found = {}
    for ndim, shape in SHAPES.items():
        values = {"a": np.ones(shape, np.float32), "t": torch.ones(shape), "b": bytearray(24)}
        for (what, how), (function, argument) in CALLS.items():
            if ndim in ranks(what, how):
                called = eval(function.format(ndim=ndim), names())
                found[f"{what}, {ndim}-d", how] = called, values.get(argument, argument), values["t"]
    return found


def times(rounds: int, number: int, shown: Callable[[str], None]) -> dict[str, dict[str, dict]]:
    """Nanoseconds of each call, by what it does and how: see `calls.times`."""
    timers = {
        # One name for the function, so that looking up a module's attribute is not part of the call.
        key: calls.timer("f(take())", {"f": function, "made": partial(MADE[argument], t, number)}, "take = made().pop")
        if is_made(argument)
        else calls.timer("f(x)", {"f": function, "x": argument})
        for key, (function, argument, t) in bound().items()
    }
    known = {"interop": interop, "to_numpy": interop.to_numpy, "from_numpy": interop.from_numpy, "kept": KEPT}
    for (what, how), statement in STATEMENTS.items():
        timers[f"{what}, 1-d", how] = calls.timer(statement, known | {"x": torch.ones(3), "other": OTHER})

    def of_block(key: tuple[str, str]) -> None:
        alone = calls.times({key: calls.timer("f(None)", {"f": block})}, rounds, number, lambda _: None)
        found[f"{key[0]}, 1-d"] |= alone[key[0]]

    with interop.enable_buffer_protocol():
        found = calls.times(timers, rounds, number, shown)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(of_block, THREAD).result()
    with interop.disable_buffer_protocol():
        of_block(OFF)
    return found


def instructions(count: int = 5_000) -> dict[str, dict[str, float]]:
    """Instructions of each call, and of the end of what it made: see `calls.instructions`."""
    return calls.instructions(NAME, cases(), count)


def run_below_callgrind(count: int) -> None:
    """Make each call `count` times, and have its instructions written out."""
    with interop.enable_buffer_protocol():
        for function, argument, t in bound().values():
            given = partial(MADE[argument], t) if is_made(argument) else partial(repeat, argument)
            calls.run_iterators(*(map(function, given(number)) for number in (calls.UNCOUNTED, count)))
