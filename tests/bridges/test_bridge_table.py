"""The tables in docs/bridges.md match the converters, and tools/bridge_table.py detects wrong results of converters."""

import ctypes
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from bridge_checks import ARRAY_REFUSALS, TENSOR_REFUSALS
from conftest import TESTS, load_script

import interop

TOOL = TESTS.parent / "tools" / "bridge_table.py"


@pytest.fixture(scope="module")
def tool():
    pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: pip install -r requirements/test.txt")
    return load_script(TOOL)


@pytest.mark.usefixtures("tool")
@pytest.mark.slow
def test_the_page_is_up_to_date():
    text = (TESTS.parent / "docs" / "bridges.md").read_text()
    if f"torch {torch.__version__.partition('+')[0]}, NumPy {np.__version__}." not in text:
        pytest.skip("the tables were made with other releases of torch and NumPy")
    done = subprocess.run([sys.executable, str(TOOL), "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_refusals_are_those_of_the_tests(tool):
    for refusals, convert in ((ARRAY_REFUSALS, interop.from_numpy), (TENSOR_REFUSALS, interop.to_numpy)):
        for make, kind, _ in refusals.values():
            assert tool.outcome(make, convert) == kind.__name__


@pytest.mark.parametrize(
    ("convert", "expected"),
    [
        (interop.from_numpy, "shared"),
        (lambda array: interop.from_numpy(array).clone(), "copied"),
        (lambda array: interop.from_numpy(array).neg(), "**wrong values**"),
        (lambda array: interop.from_numpy(array).view(-1), "shared, 1-d"),
        (lambda array: np.broadcast_to(array, array.shape), "shared, read-only"),
        (lambda array: ctypes.string_at(0), "**SIGSEGV**"),
        (lambda array: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_what_becomes_of_an_array(tool, convert, expected):
    assert tool.outcome(lambda: np.ones((2, 3)), convert) == expected


def test_after_openmp_has_begun_its_threads(tool):
    """A forked child has no OpenMP threads, and torch's loops in it do not wait for any."""
    torch.ones(1_000_000).add(1)
    assert tool.outcome(*TENSOR_REFUSALS["quantized"][:1], interop.to_numpy) == "TypeError"


def test_what_does_not_end(tool, monkeypatch):
    monkeypatch.setattr(tool, "PATIENCE", 1)
    assert tool.outcome(lambda: time.sleep(600), interop.from_numpy) == "**SIGALRM**"


def test_what_becomes_of_others(tool):
    assert tool.outcome(lambda: np.broadcast_to(1.0, 3), torch.from_numpy) == "shared, writable"
    assert tool.outcome(lambda: torch.ones(1).expand(3), torch.Tensor.numpy) == "shared, writable"
    assert tool.outcome(lambda: [1], np.array) == "**taken**"
    assert tool.outcome(lambda: torch.tensor([1j]).conj(), lambda tensor: tensor.conj().numpy()) == "**wrong values**"
