"""Trains the models in one process or as one of several, and saves what the parent compares."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import torch
from torch import Tensor, distributed, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard, distribute_module
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from experiments import load
from experiments.harness import building

from . import sharding

PYTHON, CPP, CYTHON, OPERATOR, FUSED = "Python", "C++", "Cython", "Cython op", "Cython fused"
WAYS = (PYTHON, CPP, CYTHON, OPERATOR, FUSED)
PLAIN, UNUSED, TWICE = "every step", "a parameter without use", "two backwards a step"
"""Under DistributedDataParallel: reduced after each backward; with find_unused_parameters, for which the graph is
walked; with no_sync()."""
SHARDED, PLACED = "fully_shard", "DTensor"
"""Each process keeps a part of the parameters; the batch and the parameters are DTensors."""
MODES = {
    **dict.fromkeys((PLAIN, UNUSED, TWICE, SHARDED), WAYS),
    PLACED: (PYTHON, OPERATOR, FUSED),
}
"""The ways of each mode. torch.autograd.Function passes plain zeros for the last c, which nobody uses, to the backward
of C++ and of Cython; DTensors do not mix with plain tensors."""

WAITS = 60
"""Seconds after which a process gives another one up."""


def main(folder: str, settings: str) -> None:
    """Train as the environment says that torchrun has made, or alone; write ``FOLDER/PROCESSES-RANK.pt``."""
    options = json.loads(settings)
    processes, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    together = "WORLD_SIZE" in os.environ
    torch.set_num_threads(1)
    if together:
        distributed.init_process_group("gloo", timeout=timedelta(seconds=WAITS))
    worker = _Worker(options, processes, rank, together)
    result = {
        "training": {mode: {way: worker.train(way, mode) for way in ways} for mode, ways in MODES.items()},
        "seconds": worker.seconds(),
    }
    torch.save(result, Path(folder) / f"{processes}-{rank}.pt")
    if together:
        distributed.barrier()
        distributed.destroy_process_group()
    # torch's own threads may abort a process that ends, with any model.
    sys.stdout.flush()
    os._exit(0)


def cells() -> dict[str, type[nn.Module]]:
    """The class of each way's cell: those of the experiment lltm, whose modules have been built."""
    for module in ("cell_op", "cell_fused"):
        building.native("lltm", module)  # registers its operators
    native = load("lltm", "cell_native").native_cell
    registered = load("lltm", "cell_registered").registered_cell
    found = (
        load("lltm", "cell_python").PythonCell,
        *(native(building.native("lltm", module)) for module in ("cell_cpp", "cell_cython")),
        *(registered(name) for name in ("cell", "fused")),
    )
    return dict(zip(WAYS, found, strict=True))


class _Worker:
    def __init__(self, options: dict, processes: int, rank: int, together: bool):
        self.options, self.processes, self.rank, self.together = options, processes, rank, together
        self.text = load("lltm", "data").default()
        self.cells = cells()
        if together:
            self.mesh = init_device_mesh("cpu", (processes,))
            sharding.register()

    def model(self, way: str, dtype: torch.dtype) -> nn.Module:
        """The character model of the experiment lltm, with the same parameters everywhere."""
        torch.manual_seed(0)
        sizes = len(self.text.alphabet), self.options["features"], self.options["state"]
        return load("lltm", "model").CharacterModel(self.cells[way], *sizes).to(dtype)

    def batches(self, steps: int) -> Iterator[Tensor]:
        """This process's columns of the batches that all of them have together."""
        share = self.options["batch"] // self.processes
        for batch in self.text.batches(self.options["batch"], self.options["length"], steps):
            yield batch[:, self.rank * share : (self.rank + 1) * share]

    def train(self, way: str, mode: str) -> dict:
        """Some steps in float64: the gradients of the first, the losses, the parameters, and how often the hook ran."""
        model = self.model(way, torch.float64)
        if mode == UNUSED:
            model.unused = nn.Parameter(torch.zeros(3, dtype=torch.float64))
        reduced = [0] if mode in (PLAIN, UNUSED, TWICE) else [None]
        wrapped = self._wrapped(model, mode, reduced) if self.together else model
        optimizer = torch.optim.SGD(model.parameters(), 0.3)
        gradients, losses = {}, []
        for batch in self.batches(self.options["steps"]):
            if mode == PLACED and self.together:
                batch = DTensor.from_local(batch, self.mesh, [Shard(1)], run_check=False)
            parts = batch.chunk(2, 1) if mode == TWICE else (batch,)
            optimizer.zero_grad()
            total = 0.0
            for part in parts:
                last = part is parts[-1]
                with nullcontext() if last or not self.together else wrapped.no_sync():
                    loss = _loss(wrapped, part) / len(parts)
                    loss.backward()
                    total += _whole(loss).item()
            losses.append(total)
            gradients = gradients or {
                name: _whole(one.grad).clone() for name, one in model.named_parameters() if one.grad is not None
            }
            optimizer.step()
        parameters = {name: _whole(one.detach()).clone() for name, one in model.named_parameters()}
        share = self._share(model, batch) if mode in (SHARDED, PLACED) else 1.0
        return {
            "gradients": gradients,
            "losses": losses,
            "parameters": parameters,
            "reduced": reduced[0],
            "share": share,
        }

    def seconds(self) -> dict[str, list[float]]:
        """How long a step takes in float32, of each way, the ways taking turns."""
        models = {way: self.model(way, torch.float32) for way in WAYS}
        wrapped = {way: self._wrap(model, [0]) if self.together else model for way, model in models.items()}
        optimizers = {way: torch.optim.SGD(model.parameters(), 0.3) for way, model in models.items()}
        taken = {way: [] for way in WAYS}
        for number, batch in enumerate(self.batches(self.options["timed"] + 2)):
            for way in WAYS:
                if self.together:
                    distributed.barrier()
                started = time.perf_counter()
                optimizers[way].zero_grad()
                _loss(wrapped[way], batch).backward()
                optimizers[way].step()
                if number >= 2:  # the first ones allocate
                    taken[way].append(time.perf_counter() - started)
        return taken

    def _wrapped(self, model: nn.Module, mode: str, reduced: list[int | None]) -> nn.Module:
        """The model as `mode` trains it in several processes. `reduced` counts what DistributedDataParallel reduces."""
        if mode == SHARDED:
            fully_shard(model.cell, mesh=self.mesh)
            return fully_shard(model, mesh=self.mesh)
        if mode == PLACED:
            return distribute_module(model, self.mesh)  # every process has all parameters
        return self._wrap(model, reduced, find_unused_parameters=mode == UNUSED)

    @staticmethod
    def _share(model: nn.Module, batch: Tensor) -> float:
        """Which part of its DTensors, among the parameters and the batch, this process keeps."""
        parts = [one for one in (*model.parameters(), batch) if isinstance(one, DTensor)]
        divided = [one for one in parts if not one.placements[0].is_replicate()]
        return sum(one.to_local().numel() for one in divided) / max(sum(one.numel() for one in divided), 1)

    @staticmethod
    def _wrap(model: nn.Module, reduced: list[int], **options: bool) -> DistributedDataParallel:
        # Small buckets, so that several are sent while backward goes on.
        wrapped = DistributedDataParallel(model, bucket_cap_mb=0.1, **options)
        wrapped.register_comm_hook(reduced, _counted)
        return wrapped


def _counted(reduced: list[int], bucket: distributed.GradBucket) -> torch.futures.Future[Tensor]:
    """What DistributedDataParallel calls for each bucket of gradients: count it, and average it as usual."""
    reduced[0] += 1
    return allreduce_hook(None, bucket)


def _whole(tensor: Tensor) -> Tensor:
    """All of a tensor that may be in parts."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _loss(model: Callable[[Tensor], Tensor], batch: Tensor) -> Tensor:
    return functional.cross_entropy(model(batch[:-1]).flatten(0, 1), batch[1:].flatten())
