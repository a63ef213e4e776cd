"""``make matrix STACKS="STACK..."``: run the tests on other stacks than the one of requirements/.

A STACK names the versions that differ, such as ``torch=2.15.0,python=3.13`` or
``cython=3.1.*,numpy=2.0.*,cxx=clang++-19``. All other versions are those of requirements/. `python` is a path, or a
version that is searched on PATH; `cxx` is a compiler's command. Each stack gets its own environment and the package
from a clean clone of HEAD. There pytest runs all tests that are not marked `slow`, or gets the arguments after ``--``.
The result is a line of docs/stacks.jsonl. docs/torch-releases.md has a table with the newest run of each stack. A
free-threaded CPython gets the versions of requirements/free-threaded.txt, and runs without the GIL, whatever a module
declares. Only a checkout without changes is recorded, as a line names its commit.

The STACK ``here`` is the environment that runs this program, as it is, with this checkout, which must be clean and
installed there. It is for machines without a network, such as many with a GPU.

After the tests come the checks of modules for many releases. Each stack with torch 2.11 or newer installs the very same
wheel of this run, which this program's environment builds once. A free-threaded CPython cannot load it.

uv keeps its downloads in the store, unpacked once, and hard-links them into the environments. The first release of
torch with CUDA takes some 5 GB, each further release for the same CUDA 1 GB. Such a torch runs without a GPU. uv does
not read pip's configuration: for another index, set its own UV_DEFAULT_INDEX or UV_INDEX.
"""

import argparse
import ast
import atexit
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import checkout
import one_binary
from marked import with_section

from interop.stable_abi import release_of
from interop.toolchain import MINIMUM_STABLE, find_torch

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "stacks.jsonl"
PAGE = ROOT / "docs" / "torch-releases.md"
BEGIN = "<!-- stacks: written by `make matrix` -->"
END = "<!-- end of stacks -->"
NOT_SLOW = ("-m", "not slow")

BY_TORCH = ("cuda-", "nvidia-", "setuptools")
"""Prefixes of distributions whose version depends on the release of torch."""

FOR_GPUS = ("triton",)
"""Requirements that torch needs only on a GPU. They are large, and each release needs another version."""

WITHOUT_GIL = ROOT / "requirements" / "free-threaded.txt"
"""Versions that replace the pinned ones for a CPython without a GIL."""

OF_THIS_MACHINE = ("--python-preference=system", "--no-python-downloads")
"""Options of uv: a CPython that is not here is an error, where uv would fetch a build of its own."""

COMPILERS = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS")
"""Environment variables that choose a compiler and its flags."""

OF_CALLER = ("PYTHON", "PYTEST_", "INTEROP_", "VIRTUAL_ENV")
"""Prefixes of other environment variables that would change the tests."""

CALLS = 100_000
"""How often each function of the modules for many releases is called, to detect growing memory."""

HERE = "here"
"""The stack that is already there."""

A_NEWER_CYTHON = "ignore:torch-interop supports Cython"
"""For processes that tests start; pytest has it in pyproject.toml. The Cython is newer than the package knows."""

LIMIT = 1200
"""Seconds for each command that makes a stack. A slow network may need most of it, to fetch torch with CUDA."""

WHOLE = (0, 1)
"""Exit statuses of pytest after it has run all tests. The others mean that it was stopped, or had no tests to run."""

CRASHED = "crashed and worker restarting disabled"
"""What pytest-xdist says of a worker that died. Its tests are lost, and pytest's exit status does not tell."""

VERSIONS = """
import json, platform, sys
import Cython, numpy, torch
print(json.dumps({
    "torch": torch.__version__, "cuda": torch.version.cuda,
    "python": platform.python_version() + sys.abiflags,  # t without a GIL, d with --with-pydebug
    "numpy": numpy.__version__, "cython": Cython.__version__,
    **({"gpu": torch.cuda.get_device_name()} if torch.cuda.is_available() else {}),
}))
"""

IS_FREE_THREADED = "import sys; print('t' in sys.abiflags)"

Line = dict[str, Any]


class FailedError(Exception):
    """A command that makes a stack has failed. The message has its output."""


class UnavailableError(FailedError):
    """The environment of a stack cannot be made, which says nothing about this package."""


@dataclass(frozen=True)
class Stack:
    """The requested versions. An empty string stands for the default."""

    torch: str = ""
    python: str = ""
    numpy: str = ""
    cython: str = ""
    cxx: str = ""

    @classmethod
    def parse(cls, text: str) -> "Stack":
        """Read a STACK of the command line."""
        names = [field.name for field in fields(cls)]
        found: dict[str, str] = {}
        for part in text.split(","):
            name, _, value = part.partition("=")
            if name not in names or not value or name in found:
                raise ValueError(f"stack {text!r}: expected {', '.join(f'{n}=...' for n in names)}, got {part!r}")
            found[name] = value
        try:
            shlex.split(found.get("cxx", ""))
        except ValueError as error:
            raise ValueError(f"stack {text!r}: cxx must be a command as a shell reads it, got {error}") from error
        return cls(**found)

    @property
    def folder(self) -> str:
        """The name of the stack's folder."""
        asked = "-".join(f"{name}_{value}" for name, value in asdict(self).items() if value)
        return re.sub(r"[^\w.+-]+", "_", asked) or "default"

    def requirements(self, pinned: list[str]) -> list[str]:
        """The requirements to install. `pinned` has those of the stack of requirements/."""
        chosen = {"torch": self.torch, "numpy": self.numpy, "cython": self.cython}
        wanted = []
        for line in pinned:
            name = line.partition("==")[0]
            version = chosen.get(name.lower())
            by_torch = name.lower().startswith(BY_TORCH)
            wanted.append(f"{name}=={version}" if version else name if by_torch else line)
        return wanted


def pinned(path: Path = ROOT / "requirements" / "dev.txt") -> list[str]:
    """The lines of a file of requirements and of the files that it refers to, each once."""
    found: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            found += pinned(path.with_name(line[3:]))
        elif line and not line.startswith("#"):
            found.append(line)
    return list(dict.fromkeys(found))


class Environment:
    """The folder of a stack: its virtual environment, a clone, and the output of the tests."""

    def __init__(self, stack: Stack, store: Path) -> None:
        self.stack = stack
        self.store = store
        self.folder = store / "stacks" / stack.folder
        self.checkout = self.folder / "checkout"
        self.python = self.folder / "venv" / "bin" / "python"
        self.cxx = shlex.split(stack.cxx or "c++")
        self.free_threaded = False
        """Whether its CPython was built to run without a GIL; known once the environment is made."""

    def variables(self) -> dict[str, str]:
        """The environment variables of its commands, with its compiler instead of the caller's."""
        kept = {k: v for k, v in os.environ.items() if k not in COMPILERS and not k.startswith(OF_CALLER)}
        cxx = shlex.join(self.cxx)
        compilers = {"CXX": cxx, "CC": cxx.replace("clang++", "clang").replace("g++", "gcc")}
        return {
            **kept,
            **(compilers if self.stack.cxx else {}),
            "PATH": f"{self.python.parent}{os.pathsep}{os.environ['PATH']}",
            "UV_CACHE_DIR": str(self.store / "cache"),
            "UV_LINK_MODE": "hardlink",
            "UV_SYSTEM_CERTS": "1",  # as pip; uv's own list lacks certificates that a machine adds
            "PYTHONWARNINGS": A_NEWER_CYTHON,
        }

    def without_gil(self) -> dict[str, str]:
        """The variable with which its Python keeps the GIL off, whatever a module declares. Others may reject it."""
        return {"PYTHON_GIL": "0"} if self.free_threaded else {}

    def run(self, *command: str | Path) -> str:
        """Run a command and return what it prints."""
        words = [str(word) for word in command]
        own = self.without_gil() if command[0] == self.python else {}
        try:
            done = subprocess.run(words, env=self.variables() | own, capture_output=True, text=True, timeout=LIMIT)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise FailedError(f"{shlex.join(words)} does not run: {error}") from error
        if done.returncode:
            raise FailedError(f"{' '.join(words)}\nexit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def make(self) -> None:
        """Make the folder and the environment from scratch, without this package."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        without = self.folder / "without.txt"
        without.write_text("".join(f"{name}; python_version < '3'\n" for name in FOR_GPUS))
        uv = (sys.executable, "-m", "uv")
        python = self.stack.python or sys.executable
        venv = self.folder / "venv"
        try:
            self.run(*self.cxx, "--version")  # before gigabytes are fetched
            self.run(*uv, "venv", "--quiet", "--seed", *OF_THIS_MACHINE, f"--python={python}", venv)
            self.free_threaded = self.run(self.python, "-c", IS_FREE_THREADED).strip() == "True"
            overrides = [without, *([WITHOUT_GIL] if self.free_threaded else [])]
            options = (f"--python={self.python}", *(f"--overrides={path}" for path in overrides))
            self.run(*uv, "pip", "install", "--quiet", *options, *self.stack.requirements(pinned()))
        except FailedError as error:
            raise UnavailableError(*error.args) from error

    def install(self, commit: str) -> None:
        """Install this package from a clean clone of the commit."""
        self.run("git", "clone", "--quiet", ROOT, self.checkout)
        self.run("git", "-C", self.checkout, "checkout", "--quiet", "--detach", commit)
        pip = (self.python, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--editable")
        self.run(*pip, self.checkout)

    def versions(self) -> Line:
        """The versions that the environment itself reports."""
        compiler = self.run(*self.cxx, "--version").splitlines()[0]
        return {**json.loads(self.run(self.python, "-c", VERSIONS)), "compiler": compiler}

    def test(self, arguments: list[str]) -> Line:
        """Run the tests. tests.log has pytest's output."""
        report, log = self.folder / "tests.xml", self.folder / "tests.log"
        options = [f"--numprocesses={min(os.cpu_count() or 1, 8) + 1}", "--dist=loadfile", "--no-loadscope-reorder"]
        options += ["--max-worker-restart=0", "--timeout=1800", "--verbose", f"--junit-xml={report}", *arguments]
        with log.open("w") as file:
            status = subprocess.run(
                [self.python, "-m", "pytest", *options],
                cwd=self.checkout,
                env=self.variables() | self.without_gil(),
                stdout=file,
                stderr=subprocess.STDOUT,
            ).returncode
        text = log.read_text(errors="replace")
        if status not in WHOLE or not report.exists() or CRASHED in text:
            raise FailedError(f"pytest has not run all tests; exit status {status}:\n{text}")
        return counts(report.read_text(encoding="utf-8"))

    def run_one_binary(self, wheel: Path) -> Line:
        """Install and check the wheel that was built once for all stacks."""
        checks = self.checkout / one_binary.CHECKS.relative_to(ROOT)
        return one_binary.run(str(self.python), wheel, CALLS, self.variables(), checks)


class Here(Environment):
    """The environment that runs this program, with its compiler and this checkout. It is only used, not made."""

    def __init__(self, store: Path) -> None:
        super().__init__(Stack(), store)
        self.folder = store / "stacks" / HERE
        self.checkout = ROOT
        self.python = Path(sys.executable)
        self.cxx = shlex.split(os.environ.get("CXX") or "c++")

    def variables(self) -> dict[str, str]:
        """The environment variables of its commands, with the caller's compiler."""
        return super().variables() | {name: os.environ[name] for name in COMPILERS if name in os.environ}

    def make(self) -> None:
        """Make an empty folder for the output, and check what is there."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        if changed := checkout.changes(ROOT, RESULTS, PAGE):
            raise UnavailableError(f"the checkout is not clean:\n{changed}")
        origin = self.run(self.python, "-P", "-c", "import interop; print(interop.__file__)").strip()
        if not Path(origin).is_relative_to(ROOT):
            raise UnavailableError(f"the package is not installed from this checkout, but from {origin}")
        self.free_threaded = self.run(self.python, "-c", IS_FREE_THREADED).strip() == "True"

    def install(self, commit: str) -> None:
        """Install the checkout again: its compiled half may be that of another commit."""
        head = checkout.head(ROOT)
        if head != commit:
            raise UnavailableError(f"the checkout is at {head} now, and the run began at {commit}")
        options = ("--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--editable")
        self.run(self.python, "-m", "pip", "install", *options, ROOT)


def counts(report: str) -> Line:
    """The counts in pytest's report, which has JUnit's format."""
    passed, failed, skipped, xfailed = 0, list[str](), Counter[str](), 0
    (suite,) = ElementTree.fromstring(report)
    for case in suite.iter("testcase"):
        tags = {child.tag for child in case}
        note = case.find("skipped")
        if not tags & {"failure", "error", "skipped"}:
            passed += 1
        elif note is None or tags & {"failure", "error"}:  # a skipped test has both if its fixture fails at teardown
            failed.append(f"{case.get('classname')}::{case.get('name')}")
        elif note.get("type") == "pytest.xfail":
            xfailed += 1
        else:
            skipped[reason_of(note)] += 1
    failed = list(dict.fromkeys(failed))  # a failed test has a second entry if its fixture fails too
    return {
        "passed": passed,
        "failed": len(failed),
        "skipped": skipped.total(),
        "xfailed": xfailed,
        "seconds": round(float(suite.get("time", "0"))),
        "failures": failed,
        "reasons": dict(sorted(skipped.items())),
    }


def reason_of(skipped: ElementTree.Element) -> str:
    """Why a test was skipped. For a whole file, only the text has it: of a tuple of file, line and reason."""
    message = skipped.get("message", "")
    if message != "collection skipped":
        return message
    try:
        reason = str(ast.literal_eval(skipped.text or "")[2])
    except (SyntaxError, ValueError, IndexError, TypeError):  # not pytest's own
        return skipped.text or message
    return reason.removeprefix("Skipped: ") + " (a whole file)"


def run(environment: Environment, arguments: list[str], commit: str, wheel: Path | None) -> Line:
    """The line of results for one stack. A stack that can use it also checks the wheel."""
    here = isinstance(environment, Here)
    asked = {HERE: True} if here else {k: v for k, v in asdict(environment.stack).items() if v}
    line: Line = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": commit, "asked": asked, "tests": arguments}
    folder = environment.folder
    print(f"{folder.name}: made and tested in {folder}, see tests.log there", file=sys.stderr, flush=True)
    try:
        environment.make()
        line |= environment.versions()
        environment.install(commit)
        line |= environment.test(arguments)
        if wheel and release_of(line["torch"]) >= MINIMUM_STABLE and not environment.free_threaded:
            line["one binary"] = environment.run_one_binary(wheel)
    except (FailedError, one_binary.FailedError) as error:
        line["error"] = without_paths(str(error), environment.store)[-2000:]
        line |= {"unavailable": True} if isinstance(error, UnavailableError) else {}
    return line


def without_paths(text: str, store: Path) -> str:
    """A text for the results, in which paths are relative to the store or to the checkout."""
    for folder in (store, ROOT):  # the store may be in the checkout
        text = text.replace(f"{folder}/", "")
    return text


def section(lines: list[Line]) -> str:
    """The table of the page: the newest line of each stack, newest stacks first. Below it is what failed, and why tests
    were skipped.
    """
    columns = ("torch", "python", "numpy", "cython", "compiler", "gpu")
    whole = [line for line in lines if line["tests"] == [*NOT_SLOW] and "torch" in line]  # else no test could run
    newest = {tuple(line.get(key, "") for key in columns): line for line in whole}

    def order(versions: tuple[str, ...]) -> list[list[int]]:
        return [[int(number) for number in re.findall(r"\d+", version)] for version in versions]

    heads = ("torch", "CPython", "NumPy", "Cython", "compiler", "GPU")
    heads += ("passed", "failed", "skipped", "xfailed", "one binary", "date", "commit")
    rows = [f"| {' | '.join(heads)} |", f"|{'---|' * len(columns)}{'--:|' * 4}{'---|' * 3}"]
    failed = []
    for versions in sorted(newest, key=order, reverse=True):
        line = newest[versions]
        cells = [line.get(key, "?") for key in ("passed", "failed", "skipped", "xfailed")]
        cells += [line["one binary"]["sha256"][:8] if "one binary" in line else "", line["date"], line["commit"]]
        rows.append(f"| {' | '.join(map(str, [*versions, *cells]))} |")
        found = [f"- `{name}`" for name in line.get("failures", ())]
        if "error" in line:
            what = "the checks of one binary failed" if "passed" in line else "the tests did not begin, or did not end"
            found.append(f"- {what}")
        if found:
            stack = f"torch {line['torch']}, CPython {line['python']}, NumPy {line['numpy']}, commit {line['commit']}"
            failed += [f"Failed with {stack}:", "\n".join(found)]
    return "\n\n".join(["\n".join(rows), *failed, *skips([*newest.values()])])


def skips(lines: list[Line]) -> list[str]:
    """Why tests were skipped in these runs, and how many in the run that skipped most of them."""
    runs: dict[str, list[int]] = {}
    for line in lines:
        for reason, number in line.get("reasons", {}).items():
            runs.setdefault(reason, []).append(number)
    if not runs:
        return []
    most = sorted(runs.items(), key=lambda one: (-max(one[1]), one[0]))
    rows = [f"| {reason.replace('|', '&#124;')} | {max(numbers)} | {len(numbers)} |" for reason, numbers in most]
    return [
        f'Why tests of these {len(lines)} stacks were skipped. "Tests" are those of the stack that skipped most.',
        "\n".join(["| reason | tests | stacks |", "|---|--:|--:|", *rows]),
    ]


def recorded(path: Path = RESULTS) -> list[Line]:
    """The lines of the results file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def default_store() -> Path:
    """The folder of stacks and of uv's downloads."""
    return Path(os.environ.get("INTEROP_MATRIX_STORE") or ROOT / "build" / "matrix").resolve()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stacks", nargs="*", metavar="STACK")
    parser.add_argument("--store", type=Path, help="default: $INTEROP_MATRIX_STORE, or build/matrix")
    parser.add_argument("--no-record", dest="record", action="store_false", help="only print what came of it")
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:split])
    store = options.store.resolve() if options.store else default_store()
    try:
        stacks = [Here(store) if text == HERE else Environment(Stack.parse(text), store) for text in options.stacks]
    except ValueError as error:
        parser.error(str(error))
    if options.record and stacks and (changed := checkout.changes(ROOT, RESULTS, PAGE)):
        parser.error(f"the checkout is not clean; commit, or pass --no-record:\n{changed}")
    clean = True
    # Once, because the wheel for all stacks is of this commit, and others may follow while the tests run.
    commit = checkout.head(ROOT)
    ours = find_torch()
    can_build = bool(ours and release_of(ours.version) >= MINIMUM_STABLE)
    wheel: Path | None = None
    if stacks and (can_build or not all(isinstance(one, Here) for one in stacks)):
        try:
            # A copy of this run's own, because others may build in this checkout while the tests run.
            store.mkdir(parents=True, exist_ok=True)
            folder = tempfile.mkdtemp(prefix="one-binary-", dir=store)
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            wheel = Path(shutil.copy2(one_binary.build(), folder))
        except one_binary.FailedError as error:
            parser.exit(1, f"the wheel for all stacks cannot be built in this environment: {error}\n")
    for stack in stacks:
        line = run(stack, words[split + 1 :] or [*NOT_SLOW], commit, wheel)
        print(json.dumps(line, indent=1), flush=True)
        clean &= not line.get("error") and not line["failed"]
        if options.record:
            with RESULTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
    if options.record:  # without a stack, this writes only the table
        text = with_section(PAGE.read_text(encoding="utf-8"), BEGIN, END, section(recorded()))
        PAGE.write_text(text, encoding="utf-8")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
