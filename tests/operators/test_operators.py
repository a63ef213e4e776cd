"""Every operator of torch's own database does the same in Cython as in Python.

`make test-surface` takes all of them. Other runs take a random twentieth, which changes whenever the declarations or
this code change. The comparison runs in a process of its own, because importing the database changes torch's settings.
"""

import json
import os
import subprocess
import sys

import pytest
from conftest import BUILD, TESTS, needs_stable

ALL = os.environ.get("INTEROP_SURFACE") == "all"
CHOSEN = "all" if ALL else "0.05"


pytestmark = pytest.mark.slow


def python(*arguments, stable="", **options):
    # The folders of this process, because the package under test may be installed elsewhere.
    folders = [TESTS, TESTS / "operators", TESTS.parent / "docs"]  # the last is for `experiments`, as in pyproject.toml
    path = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "INTEROP_OPDB_STABLE": stable}
    return subprocess.run([sys.executable, *arguments], env=environment, timeout=1800, **options)


@pytest.fixture(scope="module", params=["", pytest.param("2.11", marks=needs_stable)], ids=["one release", "stable"])
def report(request):
    """The report on modules for one release, and for many. The tables go to the output that pytest captures."""
    done = python("-m", "opdb.run", CHOSEN, stable=request.param)
    assert done.returncode in (0, 1), "the comparison broke down; see its output"
    folder = BUILD / f"operators{'-stable' if request.param else ''}" / ("all" if ALL else "some")
    return json.loads((folder / "report.json").read_text())


def test_operators_agree(report):
    assert not report["failures"]
    assert not report["shapes that do not compile"]
    samples, errors = report["samples"], report["error samples"]
    assert samples["passed"] == samples["ran"] > 0
    assert errors["passed"] == errors["ran"]


@pytest.mark.skipif(not ALL, reason="a random part of the operators was compared; make test-surface takes all")
def test_there_are_enough_of_them(report):
    """Without this test, an empty database or capture would pass."""
    assert report["operators"]["one call of ATen"] >= 550
    assert report["overloads of ATen"] >= 600
    assert report["samples"]["passed"] >= 50_000
    # Samples are skipped one by one, so a reason that skips more of them shows here.
    assert report["samples"]["skipped"] <= 600


def test_faults_are_noticed():
    done = python("-m", "opdb.selftest", stdout=subprocess.PIPE, text=True)
    failures = json.loads(done.stdout)
    assert failures.pop("right") == 0
    assert all(failures.values()), failures
