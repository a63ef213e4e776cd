"""``python tools/library_tests.py [NAME ...]``: the libraries' own tests, with the buffer protocol on.

Each suite runs twice, without the protocol and with it, both times with torch as SciPy's and scikit-learn's array API
backend. A test that passes without the protocol and fails with it is a difference, and the program fails. The suite
"calls" is tests/bridges/test_library_calls.py.

The counts are written to docs/library-tests.json and from there into docs/bridges.md and docs/libraries.md. A suite
that does not run keeps its earlier counts. The environment needs requirements/libraries.txt. Without NAME, all suites
run, which takes hours; ``--render`` runs none.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import resource
import runpy
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import checkout
from marked import with_section

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "library-tests.json"
SUITES_PAGE, CALLS_PAGE = ROOT / "docs" / "bridges.md", ROOT / "docs" / "libraries.md"
BEGIN = "<!-- suites: written by `python tools/library_tests.py` -->"
END = "<!-- end of suites -->"
CALLS = "calls"
CALLS_FILE = ROOT / "tests" / "bridges" / "test_library_calls.py"
PARTS = {
    "scipy": (
        "_lib cluster constants datasets differentiate fft fftpack integrate interpolate io linalg ndimage odr "
        "optimize signal sparse spatial special stats"
    ),
    "sklearn": (
        "_loss callback cluster compose covariance cross_decomposition datasets decomposition ensemble experimental "
        "feature_extraction feature_selection frozen gaussian_process impute inspection linear_model manifold metrics "
        "mixture model_selection neighbors neural_network preprocessing semi_supervised svm tests tree utils"
    ),
}
"""The folders that have tests."""
SUITES = [*(f"{package}.{part}" for package, parts in PARTS.items() for part in parts.split()), CALLS]


class Outcomes:
    """A plugin of pytest: each test's outcome, "passed", "skipped" or the first line of its error."""

    def __init__(self, protocol: bool):
        self.protocol = protocol
        self.found: dict[str, str] = {}

    def pytest_sessionstart(self) -> None:
        if self.protocol:
            import interop

            interop.enable_buffer_protocol()

    def pytest_runtest_logreport(self, report) -> None:
        if report.when == "call" or report.outcome != "passed":
            self._note(report)

    def pytest_collectreport(self, report) -> None:
        if report.failed:
            self._note(report)

    def _note(self, report) -> None:
        crash = getattr(getattr(report.longrepr, "reprcrash", None), "message", "") or str(report.longrepr)
        text = f"failed: {crash.splitlines()[0] if crash else ''}" if report.failed else report.outcome
        if not self.found.get(report.nodeid, "").startswith("failed"):
            self.found[report.nodeid] = text


def arguments(suite: str) -> list[str]:
    """The arguments of pytest for a suite."""
    if suite == CALLS:
        return [str(CALLS_FILE)]
    package, _, part = suite.partition(".")
    folder = Path(importlib.util.find_spec(package).origin).parent
    return [f"--rootdir={folder}", f"--confcutdir={folder}", "-c", os.devnull, str(folder.joinpath(*part.split(".")))]


def outcomes(given: list[str], protocol: bool, backends: str = "1") -> dict[str, str]:
    """The outcome of each test, by its name, from a process of its own; with these array API backends."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "outcomes.json")
        command = [sys.executable, __file__, "--run", str(out), "on" if protocol else "off", *given]
        environment = os.environ | {"SCIPY_ARRAY_API": backends, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
        if not out.exists():
            raise SystemExit(f"pytest {' '.join(given)} ended with status {done.returncode}:\n{done.stdout[-3000:]}")
        return json.loads(out.read_text())


def run(out: Path, protocol: bool, given: list[str]) -> None:
    """Run the tests here."""
    import pytest

    plugin = Outcomes(protocol)
    pytest.main([*given, "-q", "-p", "no:cacheprovider", "--tb=short"], plugins=[plugin])
    out.write_text(json.dumps(plugin.found))


def compared(without: dict[str, str], protocol: dict[str, str]) -> dict:
    """The counts of a suite, and each test that passes without the protocol and not with it."""
    counts = Counter(text.partition(":")[0] for text in without.values())
    passing = [test for test, text in without.items() if text == "passed"]
    differing = {test: protocol.get(test, "failed: not run") for test in passing if protocol.get(test) != "passed"}
    return {
        "tests": len(without),
        "passed": counts["passed"],
        "skipped": counts["skipped"],
        "failed": counts["failed"],
        "with the protocol": len(passing) - len(differing),
        "differing": differing,
        "failing": sorted(test for test, text in without.items() if text.startswith("failed")),
    }


def distributions(modules: Iterable[str]) -> list[str]:
    """The distributions that modules come from. A module that is not installed has none."""
    known = importlib.metadata.packages_distributions()
    return sorted({name for module in modules for name in known.get(module.partition(".")[0], [])}, key=str.lower)


def measured(suite: str) -> dict:
    """Run a suite twice, and record what it ran on."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    given = arguments(suite)
    backends = '["torch"]' if suite.startswith("scipy") else "1"  # scikit-learn's tests have no such list
    found = compared(*(outcomes(given, protocol, backends) for protocol in (False, True)))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    names = ["torch", "numpy"]
    names += distributions(runpy.run_path(str(CALLS_FILE))["CALLS"] if suite == CALLS else [suite])
    return found | {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": checkout.head(ROOT),
        "cpu minutes": round((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 60, 1),
        "versions": {name: importlib.metadata.version(name) for name in names},
    }


def recorded() -> dict:
    """The counts of earlier runs, by suite."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def versions(result: dict) -> str:
    return ", ".join(f"{name} {version.partition('+')[0]}" for name, version in result["versions"].items())


def paragraph(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def suites_section(results: dict) -> str:
    """The table of docs/bridges.md."""
    left = [f"`{suite}`" for suite in SUITES if suite not in results and suite != CALLS]
    rest = paragraph(f"Not run yet: {', '.join(left)}.") if left else ""
    if not results.keys() - {CALLS}:
        return rest
    columns = ("tests", "passed", "with the protocol", "skipped", "failed")
    lines = [
        "| tests of | run | pass without the protocol | of these, pass with it | skipped | fail anyway | on |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    for suite, result in results.items():
        if suite != CALLS:
            cells = [str(result[column]) for column in columns]
            lines.append(f"| `{suite}` | {' | '.join(cells)} | {result['date']}, {versions(result)} |")
    return "\n\n".join(filter(None, ["\n".join(lines), rest]))


def calls_section(results: dict) -> str:
    """The sentence of docs/libraries.md."""
    if CALLS not in results:
        return "The calls have not been counted yet."
    found = results[CALLS]
    return paragraph(
        "tests/bridges/test_library_calls.py calls functions of these packages through `with_arrays`: "
        f"{found['passed']} of {found['tests']} calls return what they return for arrays ({found['skipped']} skipped; "
        f"{found['date']}, {versions(found)})."
    )


def render(results: dict) -> None:
    """Write both pages from the results."""
    for page, section in ((SUITES_PAGE, suites_section), (CALLS_PAGE, calls_section)):
        text = page.read_text(encoding="utf-8")
        page.write_text(with_section(text, BEGIN, END, section(results)), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "suites", nargs="*", metavar="NAME", help=f"of {', '.join(SUITES)}, or a part: scipy.ndimage.tests"
    )
    parser.add_argument("--render", action="store_true", help="write the pages from the earlier counts")
    options = parser.parse_args()
    results = recorded()
    for suite in [] if options.render else options.suites or SUITES:
        results[suite] = found = measured(suite)
        print(f"{suite}: {found['passed']} pass, {found['with the protocol']} of them with the protocol", flush=True)
        for test, text in found["differing"].items():
            print(f"  DIFFERS: {test}: {text}")
        RESULTS.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")
    render(results)
    return 1 if any(found["differing"] for found in results.values()) else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(Path(sys.argv[2]), sys.argv[3] == "on", sys.argv[4:])
    else:
        sys.exit(main())
