"""The experiment crossing: all tools pass the same tensors to the function."""

import pytest
import torch

import experiments
from experiments.harness import building, results
from interop.cli import CommandError

NAME = "crossing"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ways():
    building.build(NAME)
    return experiments.load(NAME, "ways")


def test_every_tool_that_the_requirements_name_is_there(ways):
    assert ways.missing() == []
    assert ways.tools().keys() == {"nanobind", "tvm-ffi", "cffi"}


def test_all_ways_agree(ways):
    assert ways.functions().keys() == {(what, way) for what in ways.COUNTS for way in ways.WAYS}
    ways.check()


@pytest.mark.parametrize("wrong", [lambda *_: 6, lambda *_: 7.0, lambda a, b, c: a.numel() + b.numel()])
def test_the_check_finds_a_wrong_way(ways, monkeypatch, wrong):
    functions = ways.functions() | {("3 tensors", "cffi"): wrong}
    monkeypatch.setattr(ways, "functions", lambda: functions)
    with pytest.raises(CommandError, match=r"3 tensors, cffi: the result is .*, not 7"):
        ways.check()


def test_shapes_and_strides_do_not_matter(ways):
    """Every way reads the sizes instead of counting the memory."""
    for given in (torch.ones(2, 3), torch.ones(3, 2).t(), torch.ones(6, 2)[:, 0], torch.ones(1, 1).expand(2, 3)):
        for (what, way), function in ways.functions().items():
            if (way, given.stride()) == ("DLPack exchange, checked", (0, 0)):
                continue  # rejects memory that elements share, because a consumer might write to it
            assert function(*[given] * ways.COUNTS[what]) == 6 * ways.COUNTS[what], (what, way)


@pytest.mark.parametrize("wrong", [None, 3, [1.0]], ids=str)
def test_what_is_no_tensor_is_refused_by_all(ways, wrong):
    for (what, _), function in ways.functions().items():
        with pytest.raises((TypeError, AttributeError, RuntimeError)):
            function(*[wrong] * ways.COUNTS[what])


@pytest.mark.parametrize(
    ("tensor", "refused_by"),
    [
        (torch.ones(3, requires_grad=True), {"DLPack exchange, checked"}),
        (torch.ones(3, dtype=torch.complex64).conj(), {"DLPack exchange, checked"}),
        (
            torch.ones(3, device="meta"),
            {"nanobind", "tvm-ffi", "torch.ops", "custom_op", "DLPack exchange", "DLPack exchange, checked"},
        ),
        (
            torch.ones(3).to_sparse(),
            {"nanobind", "tvm-ffi", "ctypes", "cffi", "torch.ops", "DLPack exchange", "DLPack exchange, checked"},
        ),
    ],
    ids=["gradient", "conj", "meta", "sparse"],
)
def test_what_is_refused_is_as_the_readme_says(ways, tensor, refused_by):
    refusing = set()
    for (what, way), function in ways.functions().items():
        if what == "1 tensor":
            try:
                assert function(tensor) == 3
            except (BufferError, NotImplementedError, RuntimeError, TypeError):
                refusing.add(way)
    assert refusing == refused_by


def test_a_tool_that_is_not_installed_is_left_out(ways, monkeypatch):
    monkeypatch.setattr(building, "tool_version", lambda package: None if package == "nanobind" else "1.0")
    assert ways.missing() == ["nanobind"]
    assert "nanobind" not in ways.tools()
    assert ("1 tensor", "nanobind") not in ways.functions()
    ways.check()
    records = results.read_recorded(NAME).values()
    assert records
    for recorded in records:
        for table in (recorded["times"], recorded["instructions"]):
            for what in ways.COUNTS:
                del table[what]["nanobind"]
        section = results.section(experiments.load(NAME, "report"), recorded)
        assert "| tvm-ffi |" in section
        assert "| nanobind |" not in section


def test_another_version_of_a_tool_is_compiled_for_again(ways, monkeypatch):
    assert building.is_built(NAME)
    monkeypatch.setattr(building, "tool_version", lambda _: "0.0")
    assert not building.is_built(NAME)
