"""Measures a small cell: on the GPU's clock, on the host's, and in a CUDA graph."""

import time
from collections.abc import Callable

import torch

from experiments import load
from experiments.harness.calls import summary

from .ways import same_cells

WARM_UP = 3
KINDS = ("forward", "backward", "both")


def measure(
    batch: int,
    features: int,
    state: int,
    rounds: int,
    calls: int,
    device: torch.device,
    shown: Callable[[str], None],
) -> dict[str, dict[str, dict[str, dict]]]:
    """Time each way in turn, `rounds` times `calls` calls.

    Returns
    -------
    dict
        Microseconds a call, by what is timed ("forward", "backward", "both", "graph": both, captured in a CUDA graph),
        by way, and by clock: "device" between CUDA events around all calls, gaps included, in which the GPU waits for
        the host; "host" until the last call returned. Medians of the rounds and their quartiles.
    """
    runs = {}
    for way, cell in same_cells(features, state).items():
        runs |= {(kind, way): run for kind, run in _runs(cell.to(device), batch, device).items()}
    for run in runs.values():
        for _ in range(WARM_UP):
            run()
    blocks = {key: [] for key in runs}
    for _ in range(rounds):
        for key, run in runs.items():
            blocks[key].append(_block(run, calls, device))
        shown("")
    result = {kind: {} for kind, _ in runs}
    for (kind, way), values in blocks.items():
        result[kind][way] = {
            clock: summary([value[index] for value in values], 2) for index, clock in enumerate(("device", "host"))
        }
    return result


def _runs(cell: torch.nn.Module, batch: int, device: torch.device) -> dict[str, Callable[[], object]]:
    features, state = cell.weight.shape[1] - cell.weight.shape[0] // 3, cell.weight.shape[0] // 3
    given = [x.detach().to(device).requires_grad_() for x in load("lltm", "agreement").inputs(batch, features, state)]
    leaves = [*given, cell.weight, cell.bias]
    gradients = [torch.randn(batch, state, device=device) for _ in range(2)]

    def both():
        return torch.autograd.grad(cell(*given), leaves, gradients)

    # Before `outputs`: a living graph of autograd keeps its leaves' nodes, and the stream that they were made on, for
    # which a capture cannot wait.
    graph = {"graph": _captured(both)} if device.type == "cuda" else {}
    outputs = cell(*given)
    return graph | {
        "forward": lambda: cell(*given),
        "backward": lambda: torch.autograd.grad(outputs, leaves, gradients, retain_graph=True),
        "both": both,
    }


def _captured(run: Callable[[], object]) -> Callable[[], object]:
    """The replay of a CUDA graph of `run`."""
    # As torch's documentation asks: warmed up on a side stream, so that what is made lazily is not captured.
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = run()

    def replay(graph=graph, kept=kept):
        graph.replay()

    return replay


def _block(run: Callable[[], object], calls: int, device: torch.device) -> tuple[float, float]:
    """Microseconds a call on the device and on the host."""
    if device.type != "cuda":
        begin = time.perf_counter_ns()
        for _ in range(calls):
            run()
        taken = (time.perf_counter_ns() - begin) / calls / 1e3
        return taken, taken
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize(device)
    begin = time.perf_counter_ns()
    start.record()
    for _ in range(calls):
        run()
    end.record()
    host = (time.perf_counter_ns() - begin) / calls / 1e3
    torch.cuda.synchronize(device)
    return start.elapsed_time(end) * 1e3 / calls, host
