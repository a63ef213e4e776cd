"""Compares the results of all ways, and times them."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from experiments.harness import building
from experiments.harness.calls import summary
from interop.cli import CommandError

from .cases import Case
from .ways import NAME, SEARCHES, WAYS, usual


def agreement(case: Case) -> dict[str, int]:
    """Items of which the path is the same in all ways, and how many there are; CommandError if one differs."""
    inputs = case.inputs()
    expected = usual(inputs[0].contiguous(), *inputs[1:])
    for way, search in SEARCHES.items():
        if way == "NumPy route":
            continue
        differs = (search(*inputs) != expected).flatten(1).any(1)
        if differs.any():
            raise CommandError(
                f"{way} finds another path than the usual core for item {differs.nonzero()[0].item()} of {case.label}"
            )
    if not torch.equal(usual(inputs[0].transpose(1, 2).contiguous(), *inputs[1:], frames_first=True).mT, expected):
        raise CommandError(f"the usual core for frames first finds another path for an item of {case.label}")
    return {"items": case.batch}


def times(case: Case, threads: int, rounds: int, number: int, shown: Callable[[str], None]) -> dict[str, dict]:
    """Milliseconds of each way: median and quartiles of `rounds` means of `number` calls. The ways take turns."""
    calls = _calls(case)
    means = {way: [] for way in calls}
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for _ in range(rounds):
            for way, call in calls.items():
                call()  # with what the way before left in the caches, and in the memory that is free
                # The loop over frames takes a hundred times as long as the others.
                count = 1 if way == "PyTorch" else number
                means[way].append(sum(call() for _ in range(count)) / count * 1e3)
            shown(f"{case.label}, {threads} thread{'s' * (threads > 1)}")
    finally:
        torch.set_num_threads(before)
    return {way: summary(values, 4, "inclusive") for way, values in means.items()}


def _calls(case: Case) -> dict[str, Callable[[], float]]:
    """For each way a function that calls it once and returns the seconds that it took."""
    scores, *lengths = case.inputs()
    # NumPy gets contiguous arrays either way.
    given, first = (scores.mT, "frames_first") if case.frames_first else (scores, "texts_first")
    fresh, path = given.numpy(), np.zeros(given.shape, dtype=np.int32)
    totals, sizes = fresh.copy(), [length.numpy().astype(np.int32) for length in lengths]
    core = getattr(building.native(NAME, "search_usual"), first)

    def core_alone() -> float:
        np.copyto(totals, fresh)  # the core has written its totals over them
        return _seconds(lambda: core(path, totals, *sizes))

    calls = {way: partial(_seconds, partial(search, scores, *lengths)) for way, search in SEARCHES.items()}
    calls["NumPy route"] = partial(_seconds, partial(usual, given, *lengths, frames_first=case.frames_first))
    calls["its core alone"] = core_alone
    return {way: calls[way] for way in WAYS}


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - started
    del result  # to free it is not part of the search
    return seconds


def openmp() -> list[str]:
    """The OpenMP libraries in this process. With two, the usual core would have threads of its own."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    names = {line.split()[-1] for line in lines if "gomp" in line or "libomp" in line or "libiomp" in line}
    return sorted("/".join(Path(name).parts[-3:]) for name in names)
