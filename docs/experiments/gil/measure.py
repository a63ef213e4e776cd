"""Measures single calls, work beside a thread that computes in Python, copies, and work on two threads at once."""

import contextlib
import threading
import time
from collections.abc import Callable
from functools import partial

import torch

from experiments.harness import calls

from . import ways
from .ways import NAME, Work


def times(rounds: int, number: int, seconds: float, shown: Callable[[str], None]) -> dict[str, dict[str, dict]]:
    """Nanoseconds of an empty call, in blocks of `number`, and of a product, in blocks of `seconds`."""
    timers = {("empty", how): calls.timer("f(x)", {"f": function, "x": None}) for how, function in ways.empty().items()}
    result = calls.times(timers, rounds, number, shown)
    for size in ways.SIZES:
        functions = ways.products(size)
        count = _count(functions["held"], seconds)
        found = {how: [] for how in functions}
        for _ in range(rounds):
            for how, work in functions.items():
                found[how].append(_seconds(work, count) / count * 1e9)
            shown(f"product of {size}")
        result[f"product of {size}"] = {how: calls.summary(values) for how, values in found.items()}
    return result


def instructions(count: int = 20_000) -> dict[str, dict[str, float]]:
    """Instructions of each empty call: see `calls.instructions`."""
    return calls.instructions(NAME, [("empty", how) for how in ways.empty()], count)


def run_below_callgrind(count: int) -> None:
    """Make each empty call `count` times, and have its instructions written out."""
    for function in ways.empty().values():
        calls.run_counted(function, [None], count)


def copies(rounds: int, number: int, shown: Callable[[str], None]) -> dict[str, dict[str, dict[str, dict]]]:
    """Microseconds of a pause and a copy without the GIL, by what else runs, use count and language.

    In blocks of `number`, where nothing else runs, and beside a thread that counts in Python.
    """
    result = {}
    for beside in ("alone", "beside a thread"):
        found = {key: [] for key in ways.copies()}
        with contextlib.ExitStack() as stack:
            if beside != "alone":
                stack.enter_context(Counter())
            for _ in range(rounds):
                for key, work in ways.copies().items():
                    found[key].append(_seconds(work, number) / number * 1e6)
                shown(f"copies {beside}")
        result[beside] = {how: {} for how in ways.COPIES}
        for (how, language), values in found.items():
            result[beside][how][language] = calls.summary(values)
    return result


def sharing(rounds: int, seconds: float, shown: Callable[[str], None]) -> dict[str, dict[str, dict[str, dict]]]:
    """How often a product is computed beside a thread that counts in Python, and how far that one counts.

    Both as parts of what they do alone in as many `seconds`, by the size of the product and by way.
    """
    result = {}
    for size in ways.SIZES:
        found = {how: ([], []) for how in ways.SHARING}
        for _ in range(rounds):
            products = ways.products(size)
            for how in ways.SHARING:
                work = products[how]
                alone, _ = _rates(work, seconds)
                with Counter() as counter:
                    _, counted_alone = _rates(lambda _: time.sleep(seconds), seconds, counter)
                    own, counted = _rates(work, seconds, counter)
                found[how][0].append(own / alone)
                found[how][1].append(counted / counted_alone)
            shown(f"product of {size}")
        result[f"product of {size}"] = {
            how: {"own": calls.summary(own, 3), "other": calls.summary(other, 3)} for how, (own, other) in found.items()
        }
    return result


def threads(rounds: int, seconds: float, shown: Callable[[str], None]) -> dict[str, dict[str, dict]]:
    """How many times as much two threads compute as one in the same time, by the size of the product and by way."""
    result = {}
    for size in ways.SIZES:
        result[f"product of {size}"] = _speedups(partial(ways.products, size), ways.SHARING, rounds, seconds)
        shown(f"product of {size}")
    return result


def loops(rounds: int, seconds: float) -> dict[str, dict]:
    """How many times as many short calls two threads make as one in the same time, by what is called."""
    return _speedups(ways.loops, ways.LOOPS, rounds, seconds)


def _speedups(
    make: Callable[[], dict[str, Work]], names: tuple[str, ...], rounds: int, seconds: float
) -> dict[str, dict]:
    """How many times as much two threads do as one, of each work of `make`. Each thread has objects of its own."""
    found = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            count = _count(make()[name], seconds)
            one, two = (_together([partial(_work, make, name)] * threads, count) for threads in (1, 2))
            found[name].append(2 * one / two)
    return {name: calls.summary(values, 3) for name, values in found.items()}


class Counter(threading.Thread):
    """A thread that counts in Python, and so wants the GIL all the time, from ``with`` to its end."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.count = 0
        self._goes_on = True

    def run(self) -> None:
        while self._goes_on:
            self.count += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error) -> None:
        self._goes_on = False
        self.join()


def _rates(work: Work, seconds: float, counter: Counter | None = None) -> tuple[float, float]:
    """How often a second `work` is done, one at a time for `seconds`, and how far `counter` counts a second."""
    done, before = 0, counter.count if counter else 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        work(1)
        done += 1
    after = counter.count if counter else 0
    taken = time.perf_counter() - began
    return done / taken, (after - before) / taken


def _work(make: Callable[[], dict[str, Work]], name: str) -> Work:
    return make()[name]


def _together(makers: list[Callable[[], Work]], count: int) -> float:
    """Seconds that threads take, one for each of `makers`, which start at once and do its work `count` times.

    Each thread makes its work, because without a GIL it counts references to objects of its own without atomics.
    Each reads the clock itself. Another thread might come to it only when a product has ended that holds the GIL.
    """
    start = threading.Barrier(len(makers))
    began, ended = [], []

    def run(make: Callable[[], Work]) -> None:
        torch.set_num_threads(1)  # of OpenMP, which each thread has its own number for
        work = make()
        start.wait()
        began.append(time.perf_counter())
        work(count)
        ended.append(time.perf_counter())

    all_threads = [threading.Thread(target=run, args=(make,)) for make in makers]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()
    return max(ended) - min(began)


def _seconds(work: Work, count: int) -> float:
    began = time.perf_counter()
    work(count)
    return time.perf_counter() - began


def _count(work: Work, seconds: float) -> int:
    """How often `work` is done in about `seconds`."""
    count = 1
    while (taken := _seconds(work, count)) < seconds / 4:
        count *= 2
    return max(1, round(count * seconds / taken))
