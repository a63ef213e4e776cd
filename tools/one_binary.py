"""``make one-binary PYTHONS="PYTHON..."``: run one wheel under other torches and CPythons.

The modules of tests/projects/stable become one wheel, for torch 2.11 and CPython 3.11 or newer. This interpreter builds
it, or the interpreter of an environment that has this package for another torch (``--built-by``). Each PYTHON is an
interpreter whose environment needs only torch. pip installs that very file for it, into a folder of its own, and so
checks the wheel's tags and metadata. Then tests/stable/checks.py runs there, with tensors borrowed from Python's
objects and by torch's own way, and calls the functions many times. The result for each PYTHON is a line of
docs/one-binary.jsonl, a row of docs/stable-guide.md and a row of the experiment's page.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import checkout
from marked import with_section

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "one-binary.jsonl"
PAGE = ROOT / "docs" / "stable-guide.md"
BEGIN = "<!-- stacks of one binary: written by tools/one_binary.py -->"
END = "<!-- end of stacks of one binary -->"
OF_STACKS = (ROOT / "docs" / "stacks.jsonl", ROOT / "docs" / "torch-releases.md")
"""The results of `make matrix`, which may wait for their commit."""
FOLDER = ROOT / "build" / "one-binary"
CHECKS = ROOT / "tests" / "stable" / "checks.py"
CALLS = 1_000_000


class FailedError(Exception):
    """The checks have failed. The message has their output."""


def path_of(python: str) -> str:
    """The path of an interpreter. Links stay: a virtual environment is identified by its interpreter's folder."""
    return os.path.abspath(shutil.which(python) or python)


def versions(python: str) -> dict[str, str]:
    """The versions of torch and CPython of an interpreter."""
    code = "import json, platform, torch; print(json.dumps([torch.__version__, platform.python_version()]))"
    torch, release = json.loads(subprocess.check_output([python, "-P", "-c", code], text=True, cwd="/"))
    return {"torch": torch, "python": release}


def pip(*arguments: str | Path) -> None:
    """Run this environment's pip."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    environment = {name: value for name, value in os.environ.items() if name not in ("CFLAGS", "CXXFLAGS")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise FailedError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")


def build(python: str = sys.executable) -> Path:
    """Build the wheel in an empty folder, with the package that `python` imports."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    work = FOLDER / "work"
    shutil.copytree(ROOT / "tests" / "projects" / "stable", work)
    pip("--python", python, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", FOLDER, work)
    (found,) = FOLDER.glob("*.whl")
    return found


def run(
    python: str, file: Path, calls: int, variables: Mapping[str, str] = os.environ, checks: Path = CHECKS
) -> dict[str, Any]:
    """The result of the checks of a wheel under an interpreter: by torch's own way, then with borrowed tensors."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as site:
        # With --python, pip runs as the interpreter that it installs for, and so rejects a wheel with other tags.
        pip("--python", python, "install", "--no-deps", "--no-index", "--target", site, file)
        for borrow in ("0", "1"):
            command = [python, "-P", str(checks), site, str(calls if borrow == "1" else 0)]
            environment = {**variables, "INTEROP_BORROW": borrow}
            done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/")
            if done.returncode:
                raise FailedError(f"{python} with INTEROP_BORROW={borrow}:\n{done.stdout}{done.stderr}")
            found = json.loads(done.stdout.splitlines()[-1])
    return found | {"wheel": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}


def section(lines: list[dict[str, Any]]) -> str:
    """The table of the runs."""
    rows = sorted(
        lines, key=lambda line: [int(part) for part in re.findall(r"\d+", f"{line['torch']} {line['python']}")]
    )
    table = [f"| {line['torch']} | {line['python']} | {line['checks']} | {line['calls']} |" for line in rows]
    first = lines[0]
    built = f"Built with torch {first['built with']['torch']} and CPython {first['built with']['python']}"
    what = f"`{first['wheel']}`" if "wheel" in first else "the files"  # before 2026-11-24, no wheel was built
    return "\n".join(
        [
            f"{built} at {first['commit']}, run on {first['date']}; SHA-256 of {what}: `{first['sha256'][:16]}`.",
            "",
            "| torch | CPython | checks | calls of each function |",
            "|---|---|--:|--:|",
            *table,
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pythons", nargs="+", metavar="PYTHON", help="an interpreter with torch")
    parser.add_argument("--calls", type=int, default=CALLS, help="how often to call all of it; %(default)s by default")
    parser.add_argument(
        "--built-by",
        default=sys.executable,
        metavar="PYTHON",
        help="build the wheel with this interpreter, whose environment has this package for its own torch",
    )
    options = parser.parse_args()
    if changed := checkout.changes(ROOT, RESULTS, PAGE, *OF_STACKS):
        parser.error(f"the checkout is not clean, and a result names its commit:\n{changed}")
    built = versions(path_of(options.built_by))
    try:
        file = build(path_of(options.built_by))
    except FailedError as error:
        raise SystemExit(str(error)) from error
    commit = checkout.head(ROOT)
    lines = []
    for python in options.pythons:
        try:
            found = run(path_of(python), file, options.calls)
        except FailedError as error:
            raise SystemExit(str(error)) from error
        found |= {"built with": built, "date": str(datetime.now(UTC).date()), "commit": commit}
        print(json.dumps(found), flush=True)
        lines.append(json.dumps(found) + "\n")
    RESULTS.write_text("".join(lines))  # replaces earlier lines, which are about other files
    PAGE.write_text(with_section(PAGE.read_text(), BEGIN, END, section([json.loads(line) for line in lines])))
    render = [sys.executable, "-m", "interop", "experiments", "one-binary", "--render"]
    subprocess.run(render, check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
