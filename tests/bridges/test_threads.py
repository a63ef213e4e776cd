"""Many threads call the converters and Cython modules, with a GIL and without."""

import math
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import BUILD, FREE_THREADED, with_own_gil

import interop

pytestmark = pytest.mark.extended

HAMMER = Path(__file__).with_name("hammer.py")
SECONDS = 1 if FREE_THREADED else 0.1
"""Per job. After a change of state that threads share, run `python tests/bridges/hammer.py --seconds 60`."""

IMPORTS = """
import sys
import numpy, torch
before = sys._is_gil_enabled()
import interop, interop.build, interop.cuda, interop._core, interop._bridges
interop.to_numpy(torch.ones(3))
assert interop.load_inline("def one(): return 1", free_threaded=True).one() == 1
after = sys._is_gil_enabled()
interop.load_inline("def two(): return 2")
print(before, after, sys._is_gil_enabled())
"""


def python(*arguments, **environment):
    """The output of a Python process, which must not crash, hang or report an error."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        env=with_own_gil(INTEROP_CACHE_DIR=str(BUILD / "jit")) | environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_function_has_a_job():
    without = {"Error", "__version__", "load_ipython_extension", "unload_ipython_extension"}
    words = {*re.findall(r"\binterop\.([\w.]+)", HAMMER.read_text())}
    assert sorted({*interop.__all__, "cuda.compile"} - words - without) == []


@pytest.mark.long
@pytest.mark.timeout(700)
def test_eight_threads_hammer_each_function():
    said = python(HAMMER, f"--seconds={SECONDS}")
    print(said)  # includes the seed
    assert said.endswith(f"GIL: {not FREE_THREADED}\n")


def references_to(function):
    """How many references ten more references count."""
    before = sys.getrefcount(function)
    kept = [function] * 10
    return sys.getrefcount(kept[0]) - before


@pytest.mark.skipif(not FREE_THREADED, reason="this Python has a GIL, which nothing turns on")
@pytest.mark.parametrize("name", ["from_numpy", "to_numpy", "as_memoryview", "from_dlpack"])
def test_threads_count_references_to_a_function_as_to_those_of_python(name):
    thread = threading.Thread(target=int)  # CPython 3.13 makes functions of modules immortal when the first one starts
    thread.start()
    thread.join()
    assert references_to(getattr(interop, name)) == references_to(math.sqrt)


@pytest.mark.long
@pytest.mark.skipif(not FREE_THREADED, reason="this Python has a GIL, which nothing turns on")
def test_the_gil_stays_off_but_for_a_module_that_wants_it():
    assert python("-W", "ignore", "-c", IMPORTS).split() == ["False", "False", "True"]
