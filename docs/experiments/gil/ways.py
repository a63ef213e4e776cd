"""The functions that are compared, by the names that tables, plots and results call them."""

import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

import interop
from experiments.harness import building
from interop.cli import CommandError

NAME = "gil"
SIZES = (8, 64, 256, 1024)
"""The sizes of the square matrices whose product represents work."""
PRODUCTS = ("held", "held, no copies kept", "released", "torch")
SHARING = ("held", "released", "torch")
"""The ways that are also measured on two threads."""
PAUSE = 1000
"""Microseconds between a copy and its end, if it is kept. The same time passes before the copy."""
COPIES = ("1 to 2", "1 to 2, kept for a pause", "2 to 3")
"""Copies of an at::Tensor, by the use count before and after. A copy that is not kept is dropped at once."""

LOOPS = ("from_numpy(a)", "to_numpy(x)", "to_numpy(from_numpy(a))", "plus(x, y)", "torch.add(x, y)")
"""Short calls in a loop in Python."""

Work = Callable[[int], None]


def cython():
    """The module in Cython."""
    return building.native(NAME, "gil_cython")


def cpp():
    """The module in C++."""
    return building.native(NAME, "gil_cpp")


def empty() -> dict[str, Callable[[object], None]]:
    """Functions that do nothing, with the GIL or without."""
    return {
        "held": cython().empty,
        "released": cython().empty_released,
        "held, C++": cpp().empty,
        "released, C++": cpp().empty_released,
    }


def products(size: int) -> dict[str, Work]:
    """Functions that multiply a matrix of `size` rows by itself, as often as their argument says."""
    a, out = torch.full((size, size), 1.0), torch.empty(size, size)
    module = cython()

    def by_torch(count: int) -> None:
        for _ in range(count):
            torch.mm(a, a, out=out)

    return {
        "held": lambda count: module.products(out, a, count),
        "held, no copies kept": lambda count: module.products_of_members(out, a, count),
        "released": lambda count: module.products_released(out, a, count),
        "torch": by_torch,
    }


def loops() -> dict[str, Work]:
    """Loops in Python of as many short calls as their argument says, with arrays and tensors of eight elements."""
    array, x, y = np.ones(8, np.float32), torch.ones(8), torch.ones(8)
    plus, from_numpy, to_numpy = cython().plus, interop.from_numpy, interop.to_numpy
    calls = (
        lambda: from_numpy(array),
        lambda: to_numpy(x),
        lambda: to_numpy(from_numpy(array)),
        lambda: plus(x, y),
        lambda: torch.add(x, y),
    )

    def loop(call: Callable[[], object], count: int) -> None:
        for _ in range(count):
            call()

    return {name: partial(loop, call) for name, call in zip(LOOPS, calls, strict=True)}


def copies() -> dict[tuple[str, str], Work]:
    """Functions that wait for a millisecond, copy an at::Tensor and drop the copy, repeatedly, without the GIL."""
    x = torch.ones(3)
    result = {}
    for language, module in (("Cython", cython()), ("C++", cpp())):
        forms = ((module.first_copies, 0), (module.first_copies, PAUSE), (module.further_copies, 0))
        for how, (function, kept) in zip(COPIES, forms, strict=True):
            result[how, language] = lambda count, function=function, kept=kept: function(x, count, kept)
    return result


def check() -> None:
    """Make sure that all ways compute the same."""
    a = torch.randn(5, 5)
    for name in ("products", "products_of_members", "products_released"):
        out = torch.zeros(5, 5)
        getattr(cython(), name)(out, a, 2)
        if not torch.equal(out, a @ a):
            raise CommandError(f"{name} computes something else than a product")
    x = torch.ones(3)
    if not torch.equal(cython().plus(x, x), x + x):
        raise CommandError("plus computes something else than a sum")
    for module in (cython(), cpp()):
        for function in (module.first_copies, module.further_copies):
            before = sys.getrefcount(x), x._use_count()
            for kept in (0, 10):
                function(x, 3, kept)
            if (sys.getrefcount(x), x._use_count()) != before:
                raise CommandError(f"copies of {function.__name__} in {module.__name__} are left over")


def has_gil() -> bool:
    """Whether this Python runs with a GIL; a free-threaded one may have put it back for a module that requires it."""
    return getattr(sys, "_is_gil_enabled", lambda: True)()
