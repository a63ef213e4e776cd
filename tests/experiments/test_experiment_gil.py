"""The experiment gil: code without the GIL computes the same results and lets other threads run."""

import sys
import threading
from functools import partial
from operator import attrgetter, call
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch

import experiments
from experiments.harness import building
from interop.cli import CommandError

NAME = "gil"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def gil():
    building.build(NAME)
    return SimpleNamespace(**{name: experiments.load(NAME, name) for name in ("measure", "report", "ways")})


def test_all_ways_agree(gil):
    gil.ways.check()
    for size in gil.ways.SIZES[:2]:
        products = gil.ways.products(size)
        assert tuple(products) == gil.ways.PRODUCTS
        for work in products.values():
            work(2)


def test_the_check_finds_a_wrong_product(gil, monkeypatch):
    real = gil.ways.cython()
    names = ("products", "products_of_members", "products_released")
    for name in names:
        wrong = {other: getattr(real, other) for other in names} | {name: lambda out, a, count: out.copy_(a)}
        monkeypatch.setattr(gil.ways, "cython", lambda wrong=wrong: SimpleNamespace(**wrong))
        with pytest.raises(CommandError, match=f"{name} computes something else"):
            gil.ways.check()


class Watched(torch.Tensor):
    """Records the use counts of the matrices at each product. They include ATen's own references."""

    seen: ClassVar[list[tuple[int, ...]]] = []

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        cls.seen.append(tuple(x._use_count() for x in (*args, *kwargs.values())))
        return kwargs["out"]


def test_held_and_released_differ_by_the_release_alone(gil):
    """Both keep one copy of each matrix more than `products_of_members`, which keeps none."""
    counts = {}
    for name in ("products", "products_of_members", "products_released"):
        a, out = torch.ones(4, 4).as_subclass(Watched), torch.ones(4, 4).as_subclass(Watched)
        Watched.seen.clear()
        getattr(gil.ways.cython(), name)(out, a, 1)
        (counts[name],) = Watched.seen
    assert counts["products"] == counts["products_released"]
    assert [kept - none for kept, none in zip(counts["products"], counts["products_of_members"], strict=True)] == [
        1
    ] * 3


def test_threads_time_themselves(gil, monkeypatch):
    """Each thread reads the clock itself, because the main thread may get the GIL only after work that holds it."""
    clock, lock = [0], threading.Lock()

    def now():
        assert threading.current_thread() is not threading.main_thread()
        return clock[0]

    def work(count):
        with lock:
            clock[0] += count

    monkeypatch.setattr(gil.measure, "time", SimpleNamespace(perf_counter=now))
    assert gil.measure._together([lambda: work], 3) == 3
    clock[0] = 5
    assert gil.measure._together([lambda: work] * 2, 3) == 6


def test_the_check_finds_a_copy_that_is_left_over(gil, monkeypatch):
    kept = []
    real = gil.ways.cython()

    def first_copies(x, count, between=0):
        kept.append(x)

    first_copies.__module__ = "gil_cython"
    wrong = SimpleNamespace(
        __name__="gil_cython",
        products=real.products,
        products_of_members=real.products_of_members,
        products_released=real.products_released,
        plus=real.plus,
        first_copies=first_copies,
        further_copies=real.further_copies,
    )
    monkeypatch.setattr(gil.ways, "cython", lambda: wrong)
    with pytest.raises(CommandError, match="copies of first_copies in gil_cython are left over"):
        gil.ways.check()


@pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="there is no GIL to be released")
@pytest.mark.parametrize(("name", "runs"), [("products_released", True), ("products", False)])
def test_another_thread_runs_while_the_gil_is_released(gil, name, runs):
    """A thread counts only while a product releases the GIL: map() makes all calls from C, which never yields it."""
    a, out = torch.ones(64, 64), torch.empty(64, 64)
    function = getattr(gil.ways.cython(), name)
    with gil.measure.Counter() as counter:
        count = partial(attrgetter("count"), counter)
        counted = []
        for number in (1, 10, 100, 1_000, 10_000):
            before, _, after = map(call, [count, partial(function, out, a, number), count])
            counted.append(after - before)
            if after != before:
                break
    assert any(counted) is runs
