"""How the operators of the LLTM may be distributed: what torch needs to know to call them with DTensors."""

import torch
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.experimental import register_sharding
from torch.distributed.tensor.placement_types import Placement

ROWS, WHOLE, SUM = Shard(0), Replicate(), Partial()
"""A tensor whose rows, those of the batch, are divided among the processes; one that each process has; one that is the
sum of what the processes have."""

Placements = list[Placement | None]


def register() -> None:
    """Say for each operator with which placements of its arguments its results have which.

    The modules that define the operators have been imported. Each process computes the rows of its part of the batch,
    with all weights. The gradients of the weights are sums over the batch. Elsewhere torch moves what has another
    placement, and the first operator's gradient needs no rule: it calls operators of ATen alone.
    """
    for operator in (torch.ops.lltm.cell.default, torch.ops.lltm.fused.default):
        results = len(operator._schema.returns)
        register_sharding(operator)(_by_rows(results))
    register_sharding(torch.ops.lltm.fused_backward.default)(_by_rows_backward)


def _by_rows(results: int):
    def rule(*_: object) -> list[tuple[Placements, Placements]]:
        """The results' placements, and those of x, h, c, weight and bias."""
        return [([ROWS] * results, [ROWS, ROWS, ROWS, WHOLE, WHOLE])]

    return rule


def _by_rows_backward(*_: object) -> list[tuple[Placements, Placements]]:
    """The placements of the gradients of x, h, c, weight and bias, and those of the arguments; None for no tensor."""
    return [([ROWS, ROWS, ROWS, SUM, SUM], [ROWS] * 6 + [WHOLE] + [None] * 4)]
