"""tools/library_tests.py finds the tests that the buffer protocol breaks, and its pages have its counts."""

import os

import pytest
from conftest import TESTS, load_script

FILE = """
import pytest
import torch

def test_either_way():
    pass

def test_without():
    with pytest.raises(TypeError):
        memoryview(torch.ones(3))

def test_with():
    memoryview(torch.ones(3))

def test_never():
    assert 1 == 2

@pytest.fixture
def broken():
    yield
    raise RuntimeError("at the end")

def test_torn_down(broken):
    pass

@pytest.mark.skip
def test_skipped():
    pass
"""


@pytest.fixture(scope="module")
def tool():
    return load_script(TESTS.parent / "tools" / "library_tests.py")


@pytest.mark.long
@pytest.mark.extended
def test_what_differs_is_found(tool, tmp_path):
    (tmp_path / "test_made.py").write_text(FILE)
    given = ["-c", os.devnull, f"--rootdir={tmp_path}", str(tmp_path / "test_made.py")]
    without, protocol = (tool.outcomes(given, on) for on in (False, True))
    assert protocol["test_made.py::test_torn_down"] == "failed: RuntimeError: at the end"
    found = tool.compared(without, protocol)
    assert list(found.pop("differing")) == ["test_made.py::test_without"]
    assert found.pop("failing") == [f"test_made.py::test_{name}" for name in ("never", "torn_down", "with")]
    assert found == {"tests": 6, "passed": 2, "skipped": 1, "failed": 3, "with the protocol": 1}


def test_what_is_not_run_again_differs(tool):
    assert tool.compared({"a": "passed"}, {})["differing"] == {"a": "failed: not run"}


def test_an_end_without_outcomes_is_an_error(tool, monkeypatch):
    monkeypatch.setattr(tool.sys, "executable", "/bin/false")
    with pytest.raises(SystemExit, match="ended with status 1"):
        tool.outcomes(["x"], False)


def test_the_versions_are_those_of_what_is_called(tool):
    found = tool.distributions(["scipy.linalg", "dtaidistance.dtw", "scipy", "not_installed"])
    assert found == ["dtaidistance", "scipy"]
    called = tool.runpy.run_path(str(tool.CALLS_FILE))["CALLS"]
    assert {"scipy", "dtaidistance"} <= set(tool.distributions(called))
    assert not {"h5py", "mpi4py", "numba", "pyarrow"} & set(tool.recorded()[tool.CALLS]["versions"])


def test_the_pages_have_the_counts(tool):
    results = tool.recorded()
    for page, section in ((tool.SUITES_PAGE, tool.suites_section), (tool.CALLS_PAGE, tool.calls_section)):
        text = page.read_text(encoding="utf-8")
        assert tool.with_section(text, tool.BEGIN, tool.END, section(results)) == text, (
            "run: python tools/library_tests.py --render"
        )
    assert not any(found["differing"] for found in results.values())
