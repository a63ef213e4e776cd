"""A pytest plugin for runs under a checker: it ensures that the tests use the variant, and counts for run.py."""

import json
import os
import sys
from pathlib import Path

import pytest

import interop

CHECKER = os.environ["INTEROP_CHECKER"]
FOLDER = Path(os.environ["INTEROP_CHECKER_FOLDER"])
SITE = Path(os.environ["INTEROP_TEST_SITE"])
ROOT = Path(__file__).resolve().parent.parent.parent

# left_out: tests and repetitions of tests that do not run, each with the reason.
COUNTS = {"passed": 0, "failed": 0, "skipped": 0, "left_out": [], "outside": []}


def pytest_configure(config):
    """Raises if the tests would use the checkout's own build, in which a checker finds nothing."""
    if not Path(interop.__file__).is_relative_to(SITE):
        raise pytest.UsageError(f"interop was imported from {interop.__file__}, not from {SITE}")
    if CHECKER == "leaks":
        from growth import Growth

        config.pluginmanager.register(Growth(FOLDER / "report.growth", COUNTS["left_out"]))


def pytest_runtest_logstart(nodeid):
    """Records which test begins, in case the process dies in it."""
    (FOLDER / "last.txt").write_text(nodeid)


def pytest_runtest_logreport(report):
    if report.when == "call" or not report.passed:
        COUNTS[report.outcome] += 1


def pytest_deselected(items):
    for item in items:
        for mark in item.iter_markers("unchecked"):
            if mark.kwargs["by"] == CHECKER:
                COUNTS["left_out"].append((item.nodeid, mark.kwargs["reason"]))


def pytest_sessionfinish():
    files = (Path(getattr(module, "__file__", None) or "") for module in list(sys.modules.values()))
    COUNTS["outside"] = [str(file) for file in files if _is_ours(file) and SITE not in file.parents]
    (FOLDER / "counts.json").write_text(json.dumps(COUNTS))


def _is_ours(file):
    """Whether a file is a compiled module of this checkout, outside its virtual environment."""
    return file.suffix == ".so" and ROOT in file.parents and Path(sys.prefix) not in file.parents
