"""``python tools/port_tests.py [FOLDER]``: the originals' own tests, against the ports of docs/experiments/ports.

Each runs with the Python code of the original's source distribution, which the program downloads from the package
index, and with ours in place of its C++. Tests that the source distribution does not have are left out, unless FOLDER
has a clone of the repository, at the tag of the release. They belong to other projects, and are no part of this one.

With ``--record`` the program writes the counts into docs/experiments/ports/tests.json; `python -m interop experiments
ports --render` then writes the page. It fails if a test fails.
"""

import argparse
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

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
    if not report.exists():
        raise SystemExit(f"the tests of {port.requirement} did not run:\n{done.stdout[-3000:]}")
    count = dict.fromkeys(KINDS, 0)
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        if outcome == "failed" and case.get("name").partition("[")[0] in BY_DESIGN:
            outcome = "by design"
        count[outcome] += 1
        if outcome == "failed":
            print(f"  FAILS: {case.get('name')}")
    return count


if __name__ == "__main__":
    sys.exit(main())
