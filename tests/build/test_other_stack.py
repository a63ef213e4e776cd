"""Another stack than that of requirements/: a newer CPython, the newest torch, the oldest Cython and an old NumPy.

CI runs this beside the default stack: the ways to build, what changes Cython's compiler, NumPy's own rules, and the
files whose tests have failed on several other stacks, as docs/stacks.jsonl has it, but for three that take too long.
`make matrix` runs all tests on more stacks.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from conftest import TESTS, load_script

from interop.cython.versions import FLOOR

TORCH = "2.15.0"
PYTHON = "3.13"
TESTED = (
    *("build/test_build.py", "build/test_config.py::TestCythonize", "build/test_config.py::TestCmake::test_a_module"),
    *("build/test_cxx_library.py", "cuda/test_nvrtc.py", "cuda/test_nvrtc_launches.py"),
    *("cython/test_checks.py", "cython/test_messages.py", "cython/test_missing_names.py", "cython/test_patches.py"),
    *("cython/test_checks_property.py", "cython/test_hints.py", "jit/test_jit_errors.py"),
    # The other tests of load concern its locks and its cache.
    *(f"jit/test_jit.py::{name}" for name in ("TestLoad", "TestFile", "TestInline")),
    *("bridges/test_with_arrays.py", "bridges/test_stand_ins.py", "bridges/test_from_array.py"),
    *("bridges/test_bridge_lifetimes.py", "experiments/test_experiments.py"),
)
TOO_LONG = ("operators/test_schema_types.py", "operators/test_vmap.py", "stable/test_stable.py")
"""They have failed on several stacks, too, but all projects in tests/projects would have to be compiled for them."""
SEVERAL = 2
"""If tests of a file have failed on this many other stacks, the file is in one of these lists."""


def another_python():
    """The path of another CPython on PATH; the tests are skipped if there is none."""
    for folder in os.get_exec_path():
        path = Path(folder, f"python{PYTHON}")
        # pyenv puts programs on PATH that run the interpreter, or only say which versions have the command.
        command = [path, "-c", "import sys; print(sys.executable)"]
        if path.exists() and (found := subprocess.run(command, capture_output=True, text=True)).returncode == 0:
            return found.stdout.strip()
    assert "INTEROP_CI" not in os.environ, f"there is no CPython {PYTHON} on PATH"
    pytest.skip(f"there is no CPython {PYTHON} on PATH")


def test_what_failed_on_several_stacks_is_tested():
    matrix = load_script(TESTS.parent / "tools" / "matrix.py")
    failed = {
        ("/".join(name.partition("::")[0].split(".")[1:3]) + ".py", *line["asked"].items())
        for line in matrix.recorded()
        if line["tests"] == [*matrix.NOT_SLOW]
        for name in line.get("failures", ())
    }
    stacks = Counter(file for file, *_ in failed)
    on_several = {file for file, number in stacks.items() if number >= SEVERAL}
    assert "jit/test_jit_errors.py" in on_several
    assert sorted(on_several - {*TESTED, *TOO_LONG}) == []


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_on_another_stack():
    matrix = load_script(TESTS.parent / "tools" / "matrix.py")
    if "INTEROP_CI" not in os.environ and matrix.checkout.changes(matrix.ROOT):
        pytest.skip("the checkout has changes, and a stack is made from its commit")
    stack = f"torch={TORCH},python={another_python()},cython={FLOOR[0]}.{FLOOR[1]}.0,numpy=2.1.*"
    arguments = ["-m", "not slow", *(f"tests/{path}" for path in TESTED)]
    command = [sys.executable, TESTS.parent / "tools" / "matrix.py", "--no-record", stack, "--", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout, done.stderr
    line = json.loads(done.stdout)
    if line.get("unavailable"):
        assert "INTEROP_CI" not in os.environ, line["error"]
        pytest.skip(f"the environment of {stack} cannot be made: {line['error'].strip().splitlines()[-1]}")
    assert not line.get("error"), line["error"]
    assert not line["failed"], line["failures"]
    assert line["passed"] > 500
    assert line["one binary"]["borrows"], "built here, checked there"

    there = matrix.Environment(matrix.Stack.parse(stack), matrix.default_store()).python
    wheel = matrix.one_binary.build(there)
    assert "-cp311-abi3-" in wheel.name
    here = matrix.one_binary.run(sys.executable, wheel, calls=1000)
    assert here["borrows"], "built there, checked here"
    assert here["torch"] == torch.__version__
