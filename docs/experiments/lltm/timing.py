"""Measures one forward and one backward of each cell."""

import ctypes
import resource
from collections.abc import Callable, Sequence
from statistics import mean
from typing import Any

import torch
from torch.utils.benchmark import Timer, set_torch_threads

from experiments.harness.calls import summary

from .agreement import inputs
from .ways import WAYS, same_cells

WHAT = {
    # As in training: the graph is recorded.
    "forward": "cell(*inputs)",
    # From given gradients of h' and c' to those of x, h, c, weight and bias, through a graph that is kept. Nothing else
    # is in it: no loss, no addition to .grad.
    "backward": "torch.autograd.grad(outputs, leaves, gradients, retain_graph=True)",
    # With the graph built and freed each time. It says whether the two above add up.
    "both": "torch.autograd.grad(cell(*inputs), leaves, gradients)",
}

PRODUCTS = {
    "forward": "torch.addmm(bias, joined, weight.t())",
    "backward": "torch.mm(gates, weight); torch.mm(gates.t(), joined)",
}
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's mallopt(), from malloc.h."""

PRODUCTS["both"] = "; ".join(PRODUCTS.values())


def measure(
    batch: int,
    features: int,
    state: int,
    threads: int,
    rounds: int,
    seconds: float,
    shown: Callable[[str], None],
    wanted: Sequence[str] = WAYS,
) -> dict[str, dict[str, dict[str, float]]]:
    """Time each way in turn, `rounds` times, so that a machine that slows down does so for all of them.

    Parameters
    ----------
    batch, features, state
        The shapes.
    threads
        How many torch uses.
    rounds
        How many blocks of each are measured.
    seconds
        About how long a block lasts.
    shown
        Called after each round.
    wanted
        The ways to time.

    Returns
    -------
    dict
        Microseconds, by what is timed and by way (or "products", the floor): the median of the rounds and their
        quartiles, and "faults", the pages that the kernel had to give to the process in a call. Of the backward of a
        way also "span", as `_span` gives it.
    """
    # Already here, and not only by the timers: torch.compile writes code for the number of threads that it finds.
    with set_torch_threads(threads):
        timers, graphs = _timers(batch, features, state, threads, wanted)
        result = _medians(_blocks(timers, rounds, seconds, shown))
        for way, graph in graphs.items():
            result["backward"][way]["span"] = _span(graph)
        return result


def _span(graph: dict[str, Any], calls: int = 60) -> float:
    """The memory in which the calls of a backward put the gradient of the weights, over its size.

    It is 1 if each call has it in the same place. If glibc takes smaller tensors of the same backward from the memory
    of the last gradient, the next one lies elsewhere, so that the calls write to more memory than the caches hold.
    """
    places = set()
    for _ in range(calls):
        found = torch.autograd.grad(graph["outputs"], graph["leaves"], graph["gradients"], retain_graph=True)
        weight, size = found[3].data_ptr(), found[3].nbytes
        places.add(weight)
        del found  # as in the timed statement, whose result is dropped
    return round((max(places) - min(places) + size) / size, 2)


def keep_memory() -> None:
    """Let glibc keep the memory that is freed from now on.

    As a rule it returns the end of its heap to the kernel, if that has become large. Whether the gradient of the
    weights is there depends on all that was allocated before, and not on the cell. If it is, each backward waits for
    the kernel to clear its pages again.
    """
    for parameter, value in ((M_TRIM_THRESHOLD, 1 << 30), (M_MMAP_THRESHOLD, 1 << 25)):
        ctypes.CDLL(None).mallopt(parameter, value)


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _blocks(
    timers: dict[tuple[str, str], Timer], rounds: int, seconds: float, shown: Callable[[str], None]
) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Microseconds and page faults of a call, in each block."""
    # The number of runs in a block is chosen once, so that all rounds weigh the same.
    number = {key: max(1, round(seconds / timer.timeit(20).mean)) for key, timer in timers.items()}
    times = {key: [] for key in timers}
    for _ in range(rounds):
        for key, timer in timers.items():
            before = _faults()
            time = timer.timeit(number[key]).mean * 1e6
            times[key].append((time, (_faults() - before) / number[key]))
        shown("")
    return times


def _medians(times: dict[tuple[str, str], list[tuple[float, float]]]) -> dict[str, dict[str, dict[str, float]]]:
    result = {what: {} for what in WHAT}
    for (what, way), blocks in times.items():
        values, faults = zip(*blocks, strict=True)
        result[what][way] = summary(list(values), 2, "inclusive") | {"faults": round(mean(faults), 1)}
    return result


def _timers(
    batch: int, features: int, state: int, threads: int, wanted: Sequence[str]
) -> tuple[dict[tuple[str, str], Timer], dict[str, dict[str, Any]]]:
    """A timer for each thing to time and each way, the ways next to one another; and the graph of each backward."""
    arguments = inputs(batch, features, state)
    gradients = [torch.randn(batch, state), torch.randn(batch, state)]
    timers, graphs = {}, {}
    # The floor of whatever calls ATen's products: these, without anything around them.
    variables = {
        "torch": torch,
        "weight": torch.randn(3 * state, features + state),
        "bias": torch.randn(3 * state),
        "joined": torch.randn(batch, features + state),
        "gates": torch.randn(batch, 3 * state),
    }
    for what, statement in PRODUCTS.items():
        timers[what, "products"] = Timer(statement, globals=variables, num_threads=threads)
    for what, statement in WHAT.items():
        for way, cell in same_cells(features, state, wanted).items():
            variables = {
                "cell": cell,
                "inputs": arguments,
                "leaves": [*arguments, cell.weight, cell.bias],
                "outputs": cell(*arguments),
                "gradients": gradients,
                "torch": torch,
            }
            timers[what, way] = Timer(statement, globals=variables, num_threads=threads)
            if what == "backward":
                graphs[way] = variables
    return timers, graphs
