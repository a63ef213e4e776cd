"""torch_scatter: sums, means, products and extremes over groups of rows."""

import importlib
from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor

from experiments.harness.building import native
from experiments.ports.base import NAME, Operation, Port

SIZES = {"1k x 1": (1_000, 1), "10k x 16": (10_000, 16), "50k x 64": (50_000, 64)}
"""Rows and columns: what a graph has of edges and of features."""

PER_GROUP = 8
"""Rows of a group, on average."""

DTYPES = (torch.float32, torch.float64, torch.bfloat16)


def rows(size: str, dtype: torch.dtype, count: int | None = None) -> Tensor:
    """The values of `count` rows, or of all.

    In bfloat16 they are quarters of small integers, so that sums are exact in whatever order they are taken.
    """
    all_rows, columns = SIZES[size]
    shape = (all_rows if count is None else count, *([columns] if columns > 1 else []))
    generator = torch.Generator().manual_seed(1)
    if dtype in (torch.float32, torch.float64):
        return torch.randn(shape, generator=generator, dtype=dtype)
    return (torch.randint(-8, 9, shape, generator=generator) / 4).to(dtype)


def factors(size: str, dtype: torch.dtype) -> Tensor:
    """Rows to multiply: powers of 2, so that products are exact."""
    signs = torch.randint(0, 4, rows(size, dtype).shape, generator=torch.Generator().manual_seed(1))
    return torch.tensor([0.5, 1.0, -1.0, 2.0], dtype=dtype)[signs]


def unsorted_index(size: str) -> Tensor:
    """The group of each row. Each group has a row at least, so no result has 0 for nothing."""
    count = SIZES[size][0]
    generator = torch.Generator().manual_seed(2)
    index = torch.randint(0, count // PER_GROUP, (count,), generator=generator)
    index[: count // PER_GROUP] = torch.arange(count // PER_GROUP)
    return index[torch.randperm(count, generator=generator)]


def sorted_index(size: str) -> Tensor:
    """The same, sorted."""
    return unsorted_index(size).sort().values


def pointers(size: str) -> Tensor:
    """Where each group of `sorted_index` begins, and the end."""
    counts = torch.bincount(sorted_index(size))
    return torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])


def ours(name: str) -> Callable[..., object]:
    """Our operator `name`."""

    @cache
    def operator() -> Callable[..., object]:
        native(NAME, "scatter_cython")  # registers it
        return getattr(torch.ops.ports_scatter, name)

    return lambda *arguments: operator()(*arguments)


def theirs(name: str) -> Callable[..., object]:
    """The function `name` of torch_scatter."""

    @cache
    def function() -> Callable[..., object]:
        return getattr(importlib.import_module("torch_scatter"), name)

    return lambda *arguments: function()(*arguments)


def index_of(indptr: Tensor) -> Tensor:
    """The group of each row that the pointers name."""
    return torch.repeat_interleave(torch.arange(indptr.numel() - 1), indptr.diff())


def reduced(reduce: str, src: Tensor, index: Tensor, dim: int = 0, size: int | None = None) -> object:
    """Groups of rows in plain torch, along `dim`. The rows of extremes are the first ones."""
    size = size if size is not None else int(index.max()) + 1 if index.numel() else 0
    spread = index.reshape([-1 if d == dim else 1 for d in range(src.dim())]).expand_as(src)
    shape = [*src.shape[:dim], size, *src.shape[dim + 1 :]]
    names = {"sum": "sum", "mul": "prod", "mean": "mean", "min": "amin", "max": "amax"}
    start = torch.full(shape, 1 if reduce == "mul" else 0, dtype=src.dtype)
    result = start.scatter_reduce(dim, spread, src, names[reduce], include_self=reduce == "mul")
    if reduce not in ("min", "max"):
        return result
    equal = result.detach().gather(dim, spread) == src.detach()
    numbers = torch.arange(src.shape[dim]).reshape([-1 if d == dim else 1 for d in range(src.dim())]).expand_as(src)
    none = torch.full(shape, src.shape[dim])
    places = none.scatter_reduce(dim, spread, torch.where(equal, numbers, src.shape[dim]), "amin")
    # From the place, so that of equal values the first one alone has the gradient.
    padded = torch.cat([src, torch.zeros_like(src.narrow(dim, 0, 1))], dim) if src.shape[dim] else start
    return padded.gather(dim, places), places


def csr_reference(reduce: str, src: Tensor, indptr: Tensor) -> object:
    """`segment_{reduce}_csr` in plain torch."""
    return reduced(reduce, src, index_of(indptr), 0, indptr.numel() - 1)


def _operation(name: str, inputs: Callable[[str, torch.dtype], tuple], reference: Callable[..., object]) -> Operation:
    return Operation(name, DTYPES, tuple(SIZES), inputs, theirs(name), ours(name), reference, backward=True)


def _operations() -> tuple[Operation, ...]:
    found = []
    for reduce in ("sum", "mean", "min", "max"):
        found += [
            _operation(
                f"segment_{reduce}_csr",
                lambda size, dtype: (rows(size, dtype), pointers(size)),
                partial(csr_reference, reduce),
            ),
            _operation(
                f"segment_{reduce}_coo",
                lambda size, dtype: (rows(size, dtype), sorted_index(size)),
                partial(reduced, reduce),
            ),
        ]
    groups = {size: count // PER_GROUP for size, (count, _) in SIZES.items()}
    found += [
        _operation(
            "gather_csr",
            lambda size, dtype: (rows(size, dtype, groups[size]), pointers(size)),
            lambda src, indptr: src[index_of(indptr)],
        ),
        _operation(
            "gather_coo",
            lambda size, dtype: (rows(size, dtype, groups[size]), sorted_index(size)),
            lambda src, index: src[index],
        ),
    ]
    for reduce in ("sum", "mul", "mean", "min", "max"):
        values = factors if reduce == "mul" else rows
        found.append(
            _operation(
                f"scatter_{reduce}",
                lambda size, dtype, values=values: (values(size, dtype), unsorted_index(size), 0),
                partial(reduced, reduce),
            )
        )
    return tuple(found)


PORT = Port(
    name="torch_scatter",
    requirement="torch_scatter==2.1.2",
    module="torch_scatter",
    original_sources=(
        "csrc/cpu/*.cpp",
        "csrc/cpu/*.h",
        "csrc/scatter.cpp",
        "csrc/segment_coo.cpp",
        "csrc/segment_csr.cpp",
        "csrc/utils.h",
    ),
    operations=_operations(),
    repository="https://github.com/rusty1s/pytorch_scatter",
    tests=("test/test_*.py", "test/composite/test_*.py"),
)
