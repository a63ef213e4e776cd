"""The ways to compile the kernels, by the names that tables, plots and results call them; they must give the same."""

import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from experiments.harness import building
from interop.build import Extension
from interop.cli import CommandError

from .cell import cell_class

NAME = "one-binary"
STABLE = "2.11"
"""The oldest torch of what is compiled for many releases."""

TARGET = "0x020b000000000000"
"""The same, as torch's headers expect it."""

ONE, MANY, PYBIND11, OPERATORS = "one release", "many releases", "pybind11", "torch.ops"
FLOORS = {f"many releases, {floor}": floor for floor in ("cp311", "cp312")}
"""The ways with CPython's Limited API, by the oldest CPython. No way is for a newer CPython than the builder's."""

CYTHON: dict[str, dict[str, str]] = {  # the arguments of Extension
    ONE: {},
    MANY: {"stable": STABLE},
    **{way: {"stable": STABLE, "py_limited_api": floor} for way, floor in FLOORS.items()},
}
WAYS = (*CYTHON, PYBIND11, OPERATORS)

KERNELS = ("numel", "relu", "linear", "segment_sum", "forward", "backward")
Kernels = dict[str, Callable[..., Any]]


def available() -> list[str]:
    """The ways that this CPython can build."""
    limited = not sysconfig.get_config_var("Py_GIL_DISABLED")
    return [
        way
        for way in WAYS
        if way not in FLOORS or (limited and int(FLOORS[way].removeprefix("cp3")) <= sys.version_info[1])
    ]


def module_name(way: str) -> str:
    """The name of a way's module."""
    return "kernels_" + way.replace(", ", "_").replace(" ", "_").replace(".", "_")


def extension(way: str, source: Path | str = "kernels.pyx", name: str = "", flags: list[str] | None = None) -> Any:
    """The extension of one of `CYTHON`, over this source and, unless a name is given, called as `module_name` says."""
    return Extension(name or module_name(way), [str(source)], extra_compile_args=flags or [], **CYTHON[way])


def kernels() -> dict[str, Kernels]:
    """The functions of each way, by their names."""
    torch.ops.load_library(building.native_path(NAME, module_name(OPERATORS)))
    return {way: _functions(way) for way in available()}


def _functions(way: str) -> Kernels:
    module: ModuleType | Any
    module = torch.ops.one_binary if way == OPERATORS else building.native(NAME, module_name(way))
    return {name: getattr(module, name) for name in KERNELS}


def files() -> dict[str, list[Path]]:
    """The files of each way."""
    lib = building.native_path(NAME, module_name(PYBIND11)).parent
    names = {way: module_name(way) for way in available()}
    # What is for one release has a bootstrap beside it.
    return {way: [*lib.glob(f"{name}.*"), *lib.glob(f"_{name}_torch_*")] for way, name in names.items()}


def arguments() -> dict[str, list[Tensor]]:
    """What each kernel is called with."""
    torch.manual_seed(0)
    batch, features, state = 16, 32, 128
    segments = torch.tensor([0, *torch.randint(1, 9, (32,)).cumsum(0).tolist()])
    gates, c = torch.randn(batch, 3 * state), torch.randn(batch, state)
    new_h, new_c, activated = forward(gates, c)
    return {
        "numel": [torch.ones(3)],
        "relu": [torch.randn(3)],
        "linear": [torch.randn(4, 8), torch.randn(4, 8), torch.randn(4)],
        "segment_sum": [torch.randn(int(segments[-1]), features), segments],
        "forward": [gates, c],
        "backward": [torch.randn_like(new_h), torch.randn_like(new_c), activated, new_c],
    }


def forward(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`forward` in PyTorch."""
    i, o, z = gates.chunk(3, 1)
    i, o, z = i.sigmoid(), o.sigmoid(), functional.elu(z)
    new_c = c + z * i
    return new_c.tanh() * o, new_c, torch.cat([i, o, z], 1)


def _backward(grad_h: Tensor, grad_c: Tensor, activated: Tensor, new_c: Tensor) -> tuple[Tensor, Tensor]:
    i, o, z = activated.chunk(3, 1)
    t = new_c.tanh()
    d = grad_c + grad_h * o * (1 - t * t)
    d_z = d * i * torch.where(z > 0, 1, z + 1)
    return torch.cat([d * z * (1 - i) * i, grad_h * t * (1 - o) * o, d_z], 1), d


PYTORCH: Kernels = {
    "numel": torch.numel,
    "relu": torch.relu,
    "linear": functional.linear,
    "segment_sum": lambda values, offsets: torch.segment_reduce(values, "sum", offsets=offsets, axis=0),
    "forward": forward,
    "backward": _backward,
}
"""What each kernel must give."""


def check() -> dict[str, Any]:
    """Raise CommandError unless all ways give what PyTorch gives.

    Returns
    -------
    dict
        The largest difference of any way from PyTorch, and whether all ways give the same bits.
    """
    largest, same = 0.0, True
    found = kernels()
    for name, given in arguments().items():
        expected = _listed(PYTORCH[name](*given))
        first = None
        for way, functions in found.items():
            got = _listed(functions[name](*given))
            for a, b in zip(got, expected, strict=True):
                if a.shape != b.shape or a.dtype != b.dtype or not torch.allclose(a, b, rtol=1e-5, atol=1e-5):
                    raise CommandError(f"{name}, {way}: the result is not that of PyTorch")
                largest = max(largest, (a - b).abs().max().item())
            first = first or got
            same = same and all(map(torch.equal, got, first))
    return {"largest difference": largest, "same bits": same}


def _listed(value: Any) -> list[Tensor]:
    return [torch.as_tensor(one) for one in (value if isinstance(value, (tuple, list)) else [value])]


def cells() -> dict[str, type]:
    """A class of LLTM cells around the kernels of each way."""
    return {way: cell_class(functions) for way, functions in kernels().items()}
