"""The experiment distributed: two processes train as one does, with cells written in Cython."""

import copy

import psutil
import pytest
import torch
from torch import distributed

from experiments import load
from experiments.harness import building
from interop.cli import CommandError

NAME = "distributed"
SETTINGS = {"batch": 4, "features": 8, "state": 16, "length": 5, "steps": 3, "timed": 2}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not distributed.is_gloo_available(), reason="this torch has no gloo"),
]


@pytest.fixture(scope="module")
def compare():
    """The experiment's module `compare`, with the cells compiled."""
    building.build("lltm")
    return load(NAME, "compare")


@pytest.fixture(scope="module")
def worker(compare):
    """The experiment's module `worker`."""
    return load(NAME, "worker")


@pytest.fixture(scope="module")
def trained(compare):
    """The results that one process has saved, and those of two."""
    return compare.both(SETTINGS)


class TestTwoProcesses:
    def test_train_as_one_does(self, compare, worker, trained):
        found = compare.agreement(*trained)
        assert found.keys() == worker.MODES.keys()
        for mode, ways in found.items():
            assert ways.keys() == set(worker.MODES[mode])
            if mode in (worker.SHARDED, worker.PLACED):
                # Each process kept a part of the parameters, or of the batch.
                for one in ways.values():
                    assert sum(one["shares"]) == 1
                    assert max(one["shares"]) < 0.6
            else:
                # The hook has reduced the gradients.
                assert all(one["buckets"] > 0 for one in ways.values())

    def test_each_sees_a_part_of_the_batch(self, trained):
        """Each process sees a part of the batch. Otherwise equal gradients would prove nothing."""
        one, several = trained
        first, second = (rank["training"]["every step"]["Cython op"]["losses"][0] for rank in several)
        (alone,) = one
        assert first != second
        assert (first + second) / 2 == pytest.approx(
            alone["training"]["every step"]["Cython op"]["losses"][0], rel=1e-12
        )

    def test_the_walk_through_the_graph_finds_what_has_no_use(self, trained):
        one, several = trained
        for rank in (*one, *several):
            for way in rank["training"]["a parameter without use"].values():
                assert torch.equal(way["parameters"]["unused"], torch.zeros(3, dtype=torch.float64))

    def test_two_backwards_are_averaged_once(self, trained):
        _, several = trained
        training = several[0]["training"]
        for way in training["every step"]:
            assert training["two backwards a step"][way]["reduced"] == training["every step"][way]["reduced"]

    @pytest.mark.parametrize(
        ("rank", "what", "message"),
        [
            (1, "gradients", "the processes have different gradients"),
            (1, "parameters", "the processes have different parameters"),
            (None, "gradients", "gradients of cell.weight differ from those of one process by"),
            (None, "parameters", "parameters of cell.weight differ from those of one process by"),
        ],
    )
    def test_the_check_finds_what_differs(self, compare, trained, rank, what, message):
        one, several = copy.deepcopy(trained)
        for number in range(2) if rank is None else (rank,):
            several[number]["training"]["every step"]["Cython"][what]["cell.weight"][0, 0] += 1e-9
        with pytest.raises(CommandError, match=f"Cython, every step: {message}"):
            compare.agreement(one, several)

    def test_the_check_finds_a_gradient_that_is_missing(self, compare, trained):
        one, several = copy.deepcopy(trained)
        for rank in several:
            del rank["training"]["every step"]["Cython"]["gradients"]["cell.weight"]
        with pytest.raises(CommandError, match=r"there are gradients of .* only"):
            compare.agreement(one, several)


class TestRun:
    def test_a_process_that_fails_is_one_line(self, compare, tmp_path):
        with pytest.raises(CommandError, match=r"training in 2 processes failed: .*KeyError.*2\.log"):
            compare.run(2, {}, tmp_path)

    def test_no_process_stays_behind(self, compare, monkeypatch, tmp_path):
        """The time limit also ends torchrun's workers, which are in their own sessions."""
        monkeypatch.setattr(compare, "LIMIT", 10)
        with pytest.raises(CommandError, match="2 processes took longer than 10 s"):
            compare.run(2, SETTINGS | {"steps": 1_000_000}, tmp_path)
        left = [one.info["cmdline"] or [] for one in psutil.process_iter(["cmdline"])]
        assert not [line for line in left if str(tmp_path) in line]
