"""torch_cluster: neighbours of points, samples of them, and clusters of a graph or a grid."""

import importlib
from collections.abc import Callable, Iterator
from functools import cache

import torch
from torch import Tensor

from experiments.harness.building import native
from experiments.ports.base import NAME, Operation, Port

CLOUDS = {"64 x 10": (64, 10), "8 x 500": (8, 500), "1 x 10k": (1, 10_000)}
"""Clouds, and points of each: small molecules, larger ones, and a scan."""

NODES = {"1k": 1_000, "10k": 10_000, "100k": 100_000}
DTYPES = (torch.float32, torch.float64, torch.bfloat16)

NEIGHBOURS = 16
RADIUS, MOST = 1.5, 32
"""About 14 points of a unit of volume each are nearer."""

SEED = 5


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def points(size: str, dtype: torch.dtype, seed: int = 1) -> Tensor:
    """Points in cubes, one in each unit of volume."""
    clouds, count = CLOUDS[size]
    return (torch.rand(clouds * count, 3, generator=generator(seed)) * count ** (1 / 3)).to(dtype)


def pointers(size: str) -> Tensor:
    """Where each cloud begins, and the end."""
    clouds, count = CLOUDS[size]
    return torch.arange(clouds + 1) * count


def for_search(size: str, dtype: torch.dtype) -> tuple:
    """Points, others whose neighbours are searched for, and where their clouds begin if there are several."""
    both = (pointers(size), pointers(size)) if CLOUDS[size][0] > 1 else (None, None)
    return points(size, dtype), points(size, dtype, 2), *both


def for_samples(size: str, dtype: torch.dtype) -> tuple:
    """Points, where their clouds begin, and the part of them to choose."""
    return points(size, dtype), pointers(size), torch.tensor(0.25)


def graph(size: str, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """A graph with 8 neighbours of a node, on average, by rows; and a weight of each edge."""
    nodes = NODES[size]
    ends = torch.randint(0, nodes, (2, 4 * nodes), generator=generator(1))
    ends = ends[:, ends[0] != ends[1]]
    row, col = torch.cat([ends, ends.flip(0)], 1)
    order = row.argsort(stable=True)
    rowptr = torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(row, minlength=nodes).cumsum(0)])
    return rowptr, col[order], torch.rand(len(col), generator=generator(2)).to(dtype)


def for_grid(size: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Points, and the size of a cell."""
    count = NODES[size]
    pos = torch.rand(count, 3, generator=generator(1)) * count ** (1 / 3)
    return pos.to(dtype), torch.tensor([2.0, 1.5, 3.0], dtype=dtype)


@cache
def original(name: str) -> Callable[..., Tensor]:
    importlib.import_module("torch_cluster")
    return getattr(torch.ops.torch_cluster, name)


@cache
def ours(name: str) -> Callable[..., Tensor]:
    native(NAME, "cluster_cython")
    return getattr(torch.ops.ports_cluster, name)


def knn(operator: Callable[[str], Callable[..., Tensor]]) -> Callable[..., Tensor]:
    return lambda x, y, ptr_x, ptr_y: operator("knn")(x, y, ptr_x, ptr_y, NEIGHBOURS, False, 1)


def radius(operator: Callable[[str], Callable[..., Tensor]]) -> Callable[..., Tensor]:
    return lambda x, y, ptr_x, ptr_y: operator("radius")(x, y, ptr_x, ptr_y, RADIUS, MOST, 1)


def fps(operator: Callable[[str], Callable[..., Tensor]]) -> Callable[..., Tensor]:
    return lambda src, ptr, ratio: operator("fps")(src, ptr, ratio, False)


def graclus(operator: Callable[[str], Callable[..., Tensor]]) -> Callable[..., Tensor]:
    """Nodes are taken in an order of torch's own generator, in ours and in the original."""

    def seeded(rowptr: Tensor, col: Tensor, weight: Tensor | None = None) -> Tensor:
        torch.default_generator.manual_seed(SEED)
        return operator("graclus")(rowptr, col, weight)

    return seeded


def grid(operator: Callable[[str], Callable[..., Tensor]]) -> Callable[..., Tensor]:
    return lambda pos, size: operator("grid")(pos, size, None, None)


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """Of each row of `y` to each of `x`. Squares are added as the original adds them: four, and then one at a time."""
    squares = [(b[:, None] - a[None]).square() for a, b in zip(x.unbind(1), y.unbind(1), strict=True)]
    total, whole = x.new_zeros(len(y), len(x)), len(squares) // 4 * 4
    for first in range(0, whole, 4):
        total = total + (((squares[first] + squares[first + 1]) + squares[first + 2]) + squares[first + 3])
    for square in squares[whole:]:
        total = total + square
    return total


def clouds_of(x: Tensor, y: Tensor, ptr_x: Tensor | None, ptr_y: Tensor | None) -> Iterator[tuple[slice, slice]]:
    """The rows of each cloud in `x` and in `y`."""
    if ptr_x is None or ptr_y is None:
        yield slice(0, len(x)), slice(0, len(y))
        return
    bounds = (ptr.tolist() for ptr in (ptr_x[:-1], ptr_x[1:], ptr_y[:-1], ptr_y[1:]))
    for first_x, end_x, first_y, end_y in zip(*bounds, strict=True):
        yield slice(first_x, end_x), slice(first_y, end_y)


def pairs(found: list[tuple[int, int]]) -> Tensor:
    return torch.tensor(found, dtype=torch.int64).reshape(-1, 2).t().contiguous()


def reference_knn(x: Tensor, y: Tensor, ptr_x: Tensor | None, ptr_y: Tensor | None, k: int = NEIGHBOURS) -> Tensor:
    """The lower index first of points at one distance.

    In the original, and in ours, the order of those is that of a k-d tree, which is the same in clouds of 10 points or
    less.
    """
    found = []
    for of_x, of_y in clouds_of(x, y, ptr_x, ptr_y):
        distances = squared_distances(x[of_x], y[of_y])
        for query, row in enumerate(distances, of_y.start):
            nearest = row.argsort(stable=True)[:k].tolist()
            found += [(query, of_x.start + point) for point in nearest if row[point] < torch.finfo(x.dtype).max]
    return pairs(found)


def reference_radius(
    x: Tensor, y: Tensor, ptr_x: Tensor | None, ptr_y: Tensor | None, r: float = RADIUS, most: int = MOST
) -> Tensor:
    """The first `most` by index.

    In the original, and in ours, the order is that of a k-d tree, which is the same in clouds of 10 points or less.
    """
    found = []
    for of_x, of_y in clouds_of(x, y, ptr_x, ptr_y):
        near = squared_distances(x[of_x], y[of_y]) < torch.tensor(r * r, dtype=x.dtype)
        for query, row in enumerate(near, of_y.start):
            found += [(query, of_x.start + point) for point in row.nonzero()[:most, 0].tolist()]
    return pairs(found)


def reference_fps(src: Tensor, ptr: Tensor, ratio: Tensor) -> Tensor:
    chosen = []
    counts = (ptr.diff().float() * ratio).ceil().long().tolist()
    for start, end, count in zip(ptr[:-1].tolist(), ptr[1:].tolist(), counts, strict=True):
        if count == 0:
            continue
        cloud = src[start:end].reshape(end - start, -1)
        distances = torch.full((len(cloud),), torch.inf, dtype=src.dtype)
        index = 0
        for _ in range(count):
            chosen.append(start + index)
            distances = torch.min(distances, (cloud - cloud[index]).square().sum(1))
            index = int(distances.argmax())
    return torch.tensor(chosen, dtype=torch.int64)


def reference_graclus(rowptr: Tensor, col: Tensor, weight: Tensor | None = None, order: Tensor | None = None) -> Tensor:
    if order is None:
        order = torch.randperm(len(rowptr) - 1, generator=generator(SEED))
    cluster = [-1] * len(order)
    starts, ends = rowptr.tolist(), col.tolist()
    weights = [1.0] * len(ends) if weight is None else weight.tolist()
    for node in order.tolist():
        if cluster[node] >= 0:
            continue
        mate, most = node, 0.0
        for edge in range(starts[node], starts[node + 1]):
            itself = weight is None and ends[edge] == node
            if not itself and cluster[ends[edge]] < 0 and weights[edge] >= most:
                mate, most = ends[edge], weights[edge]
                if weight is None:
                    break
        cluster[node] = cluster[mate] = min(node, mate)
    return torch.tensor(cluster, dtype=torch.int64)


def reference_grid(pos: Tensor, size: Tensor, start: Tensor | None = None, end: Tensor | None = None) -> Tensor:
    pos = pos.reshape(len(pos), -1)
    first = pos.amin(0) if start is None else start
    last = pos.amax(0) if end is None else end
    cells = ((last - first) / size).long() + 1
    strides = torch.cat([cells.new_ones(1), cells.cumprod(0)[:-1]])
    return (((pos - first) / size).long() * strides).sum(1)


def operation(
    name: str,
    inputs: Callable[[str, torch.dtype], tuple],
    call: Callable[[Callable[[str], Callable[..., Tensor]]], Callable[..., Tensor]],
    reference: Callable[..., Tensor],
    sizes: tuple[str, ...],
    dtypes: tuple[torch.dtype, ...] = DTYPES,
) -> Operation:
    return Operation(name, dtypes, sizes, inputs, call(original), call(ours), reference, backward=False)


PORT = Port(
    name="torch_cluster",
    requirement="torch_cluster==1.6.3",
    module="torch_cluster",
    # With nanoflann, which comes with it: ours has its own trees.
    original_sources=(
        *(f"csrc/cpu/{name}_cpu.{end}" for name in ("knn", "radius", "fps", "graclus", "grid") for end in ("cpp", "h")),
        *(f"csrc/{name}.cpp" for name in ("knn", "radius", "fps", "graclus", "grid")),
        "csrc/cpu/utils.h",
        "csrc/cpu/utils/*",
    ),
    operations=(
        operation("knn", for_search, knn, reference_knn, tuple(CLOUDS)),
        operation("radius", for_search, radius, reference_radius, tuple(CLOUDS)),
        operation("fps", for_samples, fps, reference_fps, tuple(CLOUDS)),
        operation("graclus, with weights", graph, graclus, reference_graclus, tuple(NODES)),
        operation(
            "graclus, without weights",
            lambda size, dtype: graph(size, dtype)[:2],
            graclus,
            reference_graclus,
            tuple(NODES),
            (torch.float32,),
        ),
        operation("grid", for_grid, grid, reference_grid, tuple(NODES)),
    ),
    repository="https://github.com/rusty1s/pytorch_cluster",
    tests=tuple(f"test/test_{name}.py" for name in ("knn", "radius", "fps", "graclus", "grid")),
)
