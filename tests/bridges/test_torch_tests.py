"""tools/torch_tests.py, on a file like PyTorch's tests: it substitutes our functions and finds the differences."""

import subprocess
import sys

import pytest
from conftest import TESTS

pytestmark = pytest.mark.extended

FILE = """
import numpy as np
import torch
from torch.testing._internal.common_utils import TestCase

class TestNumPyInteropCPU(TestCase):
    def test_both_cpu(self):
        self.assertEqual(torch.from_numpy(np.ones(3)).numpy(), np.ones(3))

    def test_{name}_cpu(self):
        array = np.ones(3)
        array.flags.writeable = False
        self.assertWarns(UserWarning, lambda: torch.from_numpy(array))

    def test_nowhere_cpu(self):
        self.assertEqual(1, 2)

    def test_ours_alone_cpu(self):
        torch.ones(1, dtype=torch.bfloat16).numpy()

class TestOther(TestCase):
    def test_left_out(self):
        self.assertEqual(1, 2)
"""


@pytest.mark.parametrize(("name", "status"), [("numpy_non_writeable", 0), ("novelty", 1)])
@pytest.mark.long
def test_what_differs_is_found(tmp_path, name, status):
    (tmp_path / "test_numpy_interop.py").write_text(FILE.format(name=name))
    command = [sys.executable, str(TESTS.parent / "tools" / "torch_tests.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (status, "")
    first, second, third, *_ = done.stdout.splitlines()
    assert first == (
        "test_numpy_interop.py: 4 tests; 2 pass with torch's functions, 1 of them with ours, "
        f"{1 - status} differ by design; 0 skipped, 2 fail anyway"
    )
    assert second.startswith(
        "  DIFFERS: TestNumPyInteropCPU.test_novelty_cpu: ValueError" if status else "  by design, 1"
    )
    assert third == "  only with ours: TestNumPyInteropCPU.test_ours_alone_cpu"
