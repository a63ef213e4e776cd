"""The functions that need a line of Python: those in C, which are given addresses, and operators written in Python."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

Functions = tuple[Callable[..., int], ...]


def by_ctypes(path: Path) -> Functions:
    """Functions of a library in C. They check nothing, and the caller keeps the tensors alive."""
    library = ctypes.CDLL(str(path))
    c_one, c_three, c_eight = library.crossing_one, library.crossing_three, library.crossing_eight
    for function, count in ((c_one, 1), (c_three, 3), (c_eight, 8)):
        function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_int64] * count, ctypes.c_int64

    def one(a):
        return c_one(a.data_ptr(), a.numel())

    def three(a, b, c):
        return c_three(a.data_ptr(), a.numel(), b.data_ptr(), b.numel(), c.data_ptr(), c.numel())

    def eight(a, b, c, d, e, f, g, h):
        # fmt: off
        return c_eight(
            a.data_ptr(), a.numel(), b.data_ptr(), b.numel(), c.data_ptr(), c.numel(), d.data_ptr(), d.numel(),
            e.data_ptr(), e.numel(), f.data_ptr(), f.numel(), g.data_ptr(), g.numel(), h.data_ptr(), h.numel(),
        )
        # fmt: on

    return one, three, eight


def by_cffi(module: ModuleType) -> Functions:
    """Functions of a module that cffi compiled. Addresses become pointers first, because cffi accepts no numbers."""
    p, library = module.ffi.cast, module.lib
    c_one, c_three, c_eight = library.crossing_one, library.crossing_three, library.crossing_eight
    void = module.ffi.typeof("void *")  # which need not be parsed again at each call

    def one(a):
        return c_one(p(void, a.data_ptr()), a.numel())

    def three(a, b, c):
        # fmt: off
        return c_three(
            p(void, a.data_ptr()), a.numel(), p(void, b.data_ptr()), b.numel(), p(void, c.data_ptr()), c.numel(),
        )
        # fmt: on

    def eight(a, b, c, d, e, f, g, h):
        # fmt: off
        return c_eight(
            p(void, a.data_ptr()), a.numel(), p(void, b.data_ptr()), b.numel(), p(void, c.data_ptr()), c.numel(),
            p(void, d.data_ptr()), d.numel(), p(void, e.data_ptr()), e.numel(), p(void, f.data_ptr()), f.numel(),
            p(void, g.data_ptr()), g.numel(), p(void, h.data_ptr()), h.numel(),
        )
        # fmt: on

    return one, three, eight


@torch.library.custom_op("crossing_python::one", mutates_args=())
def one(a: Tensor) -> int:
    return a.numel()


@torch.library.custom_op("crossing_python::three", mutates_args=())
def three(a: Tensor, b: Tensor, c: Tensor) -> int:
    return a.numel() + b.numel() + c.numel()


@torch.library.custom_op("crossing_python::eight", mutates_args=())
def eight(a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor, f: Tensor, g: Tensor, h: Tensor) -> int:
    first, second = a.numel() + b.numel() + c.numel() + d.numel(), e.numel() + f.numel() + g.numel() + h.numel()
    return first + second


CUSTOM_OPS = one, three, eight
