"""``python tools/port_tests.py [FOLDER]``: the originals' own tests, against the ports of docs/experiments/ports.

Each runs with the Python code of the original's source distribution, which the program downloads from the package
index, and with ours in place of its C++. Tests that the source distribution does not have are left out, unless FOLDER
has a clone of the repository, at the tag of the release. They belong to other projects, and are no part of this one.

With ``--record`` the program writes the counts into docs/experiments/ports/tests.json; `python -m interop experiments
ports --render` then writes the page. It fails if a test fails, and writes nothing if the tests of a port are missing or
did not run to the end.
"""

import argparse
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import experiments  # noqa: E402
from experiments.harness import building  # noqa: E402
from experiments.harness.environment import environment  # noqa: E402

BY_DESIGN = {"test_zero_elements": "an `indptr` without a pointer: no groups there, a ValueError here"}
"""The reason for each test that fails because ours raises on purpose, by its name. The page has them too."""

KINDS = ("passed", "failed", "by design", "skipped")
RECORDED = experiments.FOLDER / "ports" / "tests.json"


def main() -> int:
    """Run the tests that are there, print the counts, and record them if that is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="with clones of the originals' repositories")
    parser.add_argument("--record", action="store_true", help="write the counts into the experiment")
    options = parser.parse_args()
    found, started = {}, environment()
    building.build("ports")
    for name, port in experiments.load("ports", "base").load_ports().items():
        found[port.requirement] = tests_of(name, port, options.folder)
        print(f"{port.requirement}: {found[port.requirement]}")
    if options.record:
        missing = [requirement for requirement, one in found.items() if not one["files"]]
        if missing:
            raise SystemExit(f"not recorded, because there are no tests of {', '.join(missing)}: give FOLDER")
        result = {"date": started["date"], "git": started["git"], "versions": started["versions"], "ports": found}
        RECORDED.write_text(json.dumps(result, indent=2) + "\n")
    return any(one["failed"] for one in found.values())


def tests_of(name: str, port: object, folder: Path | None) -> dict:
    """Where the tests of a port are from, and how they ended."""
    source = experiments.load("ports", "originals").unpacked(port, building.BUILD / "ports" / "tests" / port.name)
    clone = folder / port.repository.rpartition("/")[2] if folder and port.repository else None
    places = {"source distribution": source, **({"repository": clone} if clone else {})}
    for where, place in places.items():
        files = sorted(path for pattern in port.tests for path in place.glob(pattern))
        if files:
            return {"from": where, "files": len(files), **outcomes(name, port, source, files)}
    return {"from": "", "files": 0, **dict.fromkeys(KINDS, 0)}


def outcomes(name: str, port: object, source: Path, files: list[Path]) -> dict[str, int]:
    """How many tests passed, failed and were skipped, in their own process."""
    package = source / port.package
    for path in source.glob("csrc/*.cpp"):  # the modules that the package looks for, and that the plugin does not load
        (package / port.module / f"_{path.stem}_cpu.py").touch()
    report = source.with_name(f"{source.name}.xml")
    report.unlink(missing_ok=True)
    path = os.pathsep.join([str(package), str(experiments.FOLDER.parent)])
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(source), f"--junitxml={report}"]
    command += ["-p", "no:cacheprovider", "-p", f"experiments.ports.{name}.in_place", *map(str, files)]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, stdout=subprocess.PIPE, text=True)
    try:
        return counted(report, done.returncode)
    except ValueError as error:
        message = f"the tests of {port.requirement} did not run to the end: {error}\n{done.stdout[-3000:]}"
        raise SystemExit(message) from None


def counted(report: Path, status: int) -> dict[str, int]:
    """The outcomes in a report of pytest, which ended with `status`. A ValueError if it is not the whole report."""
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise ValueError(f"pytest ended with status {status}")
    try:
        suites = [*ElementTree.parse(report).iter("testsuite")]
    except (FileNotFoundError, ElementTree.ParseError) as error:
        raise ValueError(f"the report cannot be read: {error}") from None
    cases = [case for suite in suites for case in suite.iter("testcase")]
    if not cases or len(cases) < sum(int(suite.get("tests", "")) for suite in suites):
        raise ValueError(f"the report has {len(cases)} tests, and not all")
    count = dict.fromkeys(KINDS, 0)
    for case in cases:
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        if outcome == "failed" and case.get("name").partition("[")[0] in BY_DESIGN:
            outcome = "by design"
        count[outcome] += 1
        if outcome == "failed":
            print(f"  FAILS: {case.get('name')}")
    if bool(count["failed"] + count["by design"]) != (status == pytest.ExitCode.TESTS_FAILED):
        raise ValueError(f"pytest ended with status {status}, which does not fit the report: {count}")
    return count


if __name__ == "__main__":
    sys.exit(main())
