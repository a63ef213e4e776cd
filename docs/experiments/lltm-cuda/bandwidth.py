"""Measures the elementwise kernels of a large cell against a copy on the device, in bytes moved a second."""

from collections.abc import Callable
from statistics import median

import torch

from .ways import module

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)

CALLS = 10
"""How many follow one another between two events."""

# How many values a kernel reads and writes for each of the state: gates and c, h', c' and activations; gradients of h'
# and c', activations and c', gradients of gates and c.
MOVED = {"forward": 4 + 5, "backward": 6 + 4}


def measure(
    batch: int, state: int, rounds: int, device: torch.device, shown: Callable[[str], None]
) -> dict[str, dict[str, float]]:
    """Gigabytes a second, read and written, by dtype and by kernel ("copy", "forward", "backward"): the median."""
    result = {}
    for dtype in DTYPES:
        runs = _runs(batch, state, dtype, device)
        times = {name: [] for name in runs}
        for _ in range(rounds + 1):
            for name, (run, _) in runs.items():
                times[name].append(_milliseconds(run, device))
        # The first of each warmed up.
        result[str(dtype).removeprefix("torch.")] = {
            name: round(moved / median(times[name][1:]) / 1e6, 1) for name, (_, moved) in runs.items()
        }
        shown(str(dtype))
    return result


def _runs(
    batch: int, state: int, dtype: torch.dtype, device: torch.device
) -> dict[str, tuple[Callable[[], object], int]]:
    """What is measured, and the bytes that it moves."""
    kernels = module()
    gates, d_gates = (torch.randn(batch, 3 * state, device=device).to(dtype) for _ in range(2))
    c, new_h, new_c, d_c, *grads = (torch.randn(batch, state, device=device).to(dtype) for _ in range(6))
    return {
        # As large as what the kernels touch, so that no cache holds it.
        "copy": (lambda: d_gates.copy_(gates), 2 * gates.nbytes),
        "forward": (lambda: kernels.pointwise_forward(gates, c, new_h, new_c), MOVED["forward"] * c.nbytes),
        "backward": (
            lambda: kernels.pointwise_backward(*grads, gates, new_c, d_gates, d_c),
            MOVED["backward"] * c.nbytes,
        ),
    }


def _milliseconds(run: Callable[[], object], device: torch.device) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    # About a millisecond, so that the calls wait for the GPU and not the GPU for them.
    torch.cuda._sleep(2_000_000)
    start.record()
    for _ in range(CALLS):
        run()
    end.record()
    torch.cuda.synchronize(device)
    return start.elapsed_time(end) / CALLS
