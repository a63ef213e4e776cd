"""Builds our native code with a checker's flags, verifies that the checker finds planted faults, then runs the tests.

python tests/checkers/run.py asan|ubsan|tsan|leaks|perturb [arguments of pytest, such as -k linear]

All output goes to build/checkers. README.md in this folder explains how to read a report and how to add code.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
ROOT = TESTS.parent
OF_BUILDS = (
    *("abi", "build", "codegen", "cython"),
    *("errors.py", "paths.py", "private.py", "processes.py", "stable_abi.py", "toolchain.py"),
)
"""The parts of interop that builds use."""
BUILD = ROOT / "build" / "checkers"
FAULTS = HERE / "faults"

LIMIT = 600  # seconds; a process that starts no test for longer counts as hung
SANITIZER_FAILED = "LeakSanitizer has encountered a fatal error"
MAX_BLIND = 2  # processes of tests in which LeakSanitizer may fail before a run shows too little
FOUND = 66  # the exit status of a process in which a checker found a fault; pytest's own are 0 to 5


@dataclass(frozen=True)
class Variant:
    """A build of our native code."""

    name: str
    flags: str  # for the compiler and the linker
    symbol: bytes  # a symbol that modules built with them refer to

    @property
    def folder(self) -> Path:
        return BUILD / self.name

    @property
    def site(self) -> Path:
        """The folder that everything is installed in."""
        return self.folder / "site"


@dataclass(frozen=True)
class Checker:
    """A variant, and how to run it."""

    variant: Variant
    variable: str  # the environment variable that the checker reads its options from
    options: dict[str, str] | str  # names and values, or the text of the variable
    preload: tuple[str, ...]  # libraries that must come before Python's own
    # Each function of faults/planted.h, and the name that the checker's report must give its fault. A checker without
    # reports of its own shows a fault by a failing test, and pytest's output is the report.
    faults: dict[str, str]


# -g1 suffices for line numbers. With frame pointers and no tail calls, stacks are complete and quick to unwind.
COMMON = "-O1 -g1 -fno-omit-frame-pointer -fno-optimize-sibling-calls"

ASAN = Variant(
    "asan",
    # libstdc++'s assertions catch errors that the sanitizers miss, such as reading an empty optional.
    f"{COMMON} -fsanitize=address -D_GLIBCXX_ASSERTIONS",
    b"__asan_init",
)
UBSAN = Variant(
    "ubsan",
    # vptr needs type information that torch does not export. -fwrapv, one of Python's own flags, makes signed overflow
    # defined behaviour, which UBSan does not report.
    f"{COMMON} -fno-wrapv -fsanitize=undefined -fno-sanitize=vptr -fno-sanitize-recover=undefined",
    b"__ubsan_handle_",
)
TSAN = Variant("tsan", f"{COMMON} -fsanitize=thread", b"__tsan_init")

# No instrumentation. The separate build ensures that the tests and their projects are those of the other variants.
PLAIN = Variant("plain", COMMON, b"")

# ASan looks up __cxa_throw at startup. Python itself does not load libstdc++; without it, C++ exceptions would abort.
ASAN_LIBRARIES = ("libasan.so", "libstdc++.so")

# torch raises an exception when memory runs out, and there are tests for it.
MEMORY_MAY_END = {"allocator_may_return_null": "1"}

CHECKERS = {
    "asan": Checker(
        ASAN,
        "ASAN_OPTIONS",
        MEMORY_MAY_END
        | {
            "exitcode": str(FOUND),
            "detect_leaks": "0",  # `make leaks` detects them
            "detect_stack_use_after_return": "1",
            "handle_abort": "1",  # a failed assertion of libstdc++ aborts
        },
        ASAN_LIBRARIES,
        {
            "read_past_end": "heap-buffer-overflow",
            "read_freed_tensor": "heap-use-after-free",
            "read_freed_object": "heap-use-after-free",
            "read_dangling_reference": "stack-use-after-return",
        },
    ),
    "ubsan": Checker(
        UBSAN,
        "UBSAN_OPTIONS",
        {"exitcode": str(FOUND), "print_stacktrace": "1"},
        (),
        {
            "overflow": "signed integer overflow",
            "read_misaligned": "load of misaligned address",
            "call_on_null": "member access within null pointer",
        },
    ),
    "tsan": Checker(
        TSAN,
        "TSAN_OPTIONS",
        # Python and torch are not instrumented. TSan ignores their memory accesses, but their locks, including the
        # GIL, do order ours.
        MEMORY_MAY_END | {"exitcode": str(FOUND), "ignore_noninstrumented_modules": "1"},
        ("libtsan.so",),
        {"race_of_cpp_threads": "data race", "race_in_tensor": "data race", "race_in_loop": "data race"},
    ),
    # One run detects leaks in two ways. LeakSanitizer reports unreachable memory when a process exits. Python and torch
    # leak some as well, so only allocations with a frame of ours on the stack count. LeakSanitizer misses an object
    # that a leaked reference keeps alive, because Python's garbage collector still points to it. Nor can it attribute a
    # tensor that torch allocated: torch has no frame pointers, and unwinding its stacks without them takes a minute per
    # process. growth.py detects both: it repeats each test and measures the memory in use in ASan's allocator.
    "leaks": Checker(
        ASAN,
        "ASAN_OPTIONS",
        MEMORY_MAY_END
        | {
            "exitcode": "0",  # Python itself always leaks a little, so the reports decide
            "detect_leaks": "1",
            "malloc_context_size": "12",
            "stack_trace_format": '"    #%n %p in %f %S (%m)"',  # %m: the file, which shows whether the frame is ours
            # Freed memory in the quarantine would count as memory in use.
            "quarantine_size_mb": "0",
            "thread_local_quarantine_size_kb": "0",
        },
        ASAN_LIBRARIES,
        {
            "leak_memory": "Direct leak of",
            "leak_cpp_tensor": "memory in use",
            "leak_reference": "references to torch.Tensor",
            "leak_none": "references to None",
        },
    ),
    # glibc fills freed memory with this byte, and allocated memory with its complement. Reads of such memory then give
    # numbers that a test notices, even in NumPy and in torch's own kernels, which no sanitizer instruments.
    "perturb": Checker(PLAIN, "MALLOC_PERTURB_", "165", (), {"read_freed_tensor": "-2.87"}),
}


def main(name: str, arguments: list[str]) -> int:
    """Builds, verifies the checker, runs the tests, and prints a summary of one paragraph."""
    checker = CHECKERS[name]
    start = time.monotonic()
    built = build(checker.variant)
    ready = time.monotonic()
    with ThreadPoolExecutor(2) as pool:  # importing torch takes nearly all of the time
        caught, missed = [], []
        for line, seen in pool.map(lambda fault: run_fault(name, fault), checker.faults):
            (caught if seen else missed).append(line)
    tested = time.monotonic()
    run = run_pytest(name, "tests", [*map(str, native_files()), *arguments])
    end = time.monotonic()

    print(run.output)
    problems = missed + run.problems()
    for problem in problems:
        print(f"{name}: {problem}\n")
    left_out = run.counts.get("left_out", ())
    for test, reason in left_out:
        print(f"{name}: left out: {test}: {reason}")
    counts = ", ".join(f"{run.counts[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped") if run.counts)
    sentences = [
        f"{built}.",
        f"Planted faults caught: {len(caught)} of {len(checker.faults)}: {'; '.join(caught) or 'none'}.",
        f"Tests: {counts or 'not finished'}; {len(left_out)} left out, listed above.",
        f"{run.foreign} leaks without a frame of ours are not counted." if name == "leaks" else "",
        f"LeakSanitizer itself failed in {run.blind} of the processes that tests started." if run.blind else "",
        f"{len(problems)} PROBLEMS." if problems else "Nothing was found in our code.",
        f"Seconds: {ready - start:.0f} to build, {tested - ready:.0f} for the faults, {end - tested:.0f} for tests.",
    ]
    print(textwrap.fill(f"{name}: {' '.join(filter(None, sentences))}", 120, break_on_hyphens=False))
    return 1 if problems else 0


def native_files() -> list[Path]:
    """The test files with native tests. The others are not even imported, because they may need a checkout."""
    return sorted(path for path in TESTS.rglob("test_*.py") if "mark.native" in path.read_text())


def run_fault(name: str, fault: str) -> tuple[str, bool]:
    """Runs a planted fault like a test. Returns the report's line that names it and True; or the problem and False."""
    run = run_pytest(name, fault, [f"{FAULTS / 'planted.py'}::test_{fault}"])
    called = CHECKERS[name].faults[fault]
    for report in run.reports or [run.output]:
        line = next((line for line in report.splitlines() if called in line), None)
        if line and fault in report and run.status:
            return f"{fault} ({shortened(line)})", True
    return (
        f"the checker is blind: no report calls planted::{fault} {called!r}; the exit status was {run.status}. "
        + "\n".join([run.output, *run.reports])
    ), False


def shortened(line: str) -> str:
    """A line of a report without the parts that vary between runs: folders, addresses, process IDs."""
    return re.sub(r"==\d+==|\S*/(?=\w)| \(pid=\d+\)| on address 0x.*| 0x[0-9a-f]+|:$", "", line).strip()


@dataclass(frozen=True)
class Run:
    """The outcome of a pytest process."""

    status: int | None  # None if it hung
    output: str
    reports: list[str]  # the checker's, about this process and its children
    foreign: int  # number of leaks left out of the reports
    blind: int  # number of processes, other than pytest's own, in which LeakSanitizer itself failed
    counts: dict  # see under_checker.py; empty if the process did not finish
    last: str  # the last test that started

    def problems(self) -> list[str]:
        found = [f"report:\n{report}" for report in self.reports]
        if self.status is None:
            found.append(f"no test began for {LIMIT} s, after {self.last}")
        elif not self.counts:
            found.append(f"the process died with status {self.status}, in {self.last}")
        elif self.status and not found:
            found.append(f"pytest ended with status {self.status}")
        elif not self.counts["passed"]:
            found.append("no test passed")
        if self.blind > MAX_BLIND:
            found.append(f"LeakSanitizer itself failed in {self.blind} processes that tests started; run again")
        if self.counts.get("outside"):
            found.append(f"modules that are not the variant's were tested: {', '.join(self.counts['outside'])}")
        return found


def run_pytest(name: str, label: str, arguments: list[str]) -> Run:
    """Runs tests under a checker; retries if LeakSanitizer itself fails, as it may while a thread of torch's exits.

    In a process that a test started, MAX_BLIND failures are accepted: the test starts one for each of its repetitions.
    """
    for _ in range(3):
        run = run_pytest_once(name, label, arguments)
        if not any(SANITIZER_FAILED in report for report in run.reports):
            break
    return run


def run_pytest_once(name: str, label: str, arguments: list[str]) -> Run:
    checker = CHECKERS[name]
    folder = BUILD / "runs" / name / label
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # Reports go to files, because pytest captures the output and loses it if the process dies.
    options = checker.options
    if not isinstance(options, str):
        options = ":".join(f"{key}={value}" for key, value in (options | {"log_path": str(folder / "report")}).items())
    environment = os.environ | {
        checker.variable: options,
        "LD_PRELOAD": " ".join(library(file) for file in checker.preload),
        "PYTHONMALLOC": "malloc",  # otherwise ASan would see Python's arenas and not the objects in them
        "OMP_NUM_THREADS": "1",
        # The variant must precede the working folder and the editable install, in child processes as well.
        "PYTHONSAFEPATH": "1",
        "PYTHONPATH": os.pathsep.join([str(checker.variant.site), str(HERE)]),
        "INTEROP_TEST_SITE": str(checker.variant.site),
        "INTEROP_CHECKER": name,
        "INTEROP_CHECKER_FOLDER": str(folder),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "under_checker", "-p", "no:cacheprovider"]
    command += ["-p", "no:faulthandler"]  # faulthandler would take SIGSEGV from the checker
    command += ["-m", f"native and not unchecked(by='{name}')", *arguments]
    with open(folder / "output.txt", "w") as output:
        # A session of its own, so that hanging children are killed with it.
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            status = wait(process, folder / "last.txt")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    texts = {path.name: path.read_text(errors="replace") for path in sorted(folder.glob("report.*"))}
    own = f"report.{process.pid}"
    seeing = [text for file, text in texts.items() if file == own or SANITIZER_FAILED not in text]
    reports, foreign = relevant(seeing)
    counts, last = folder / "counts.json", folder / "last.txt"
    return Run(
        status,
        (folder / "output.txt").read_text(errors="replace"),
        reports,
        foreign,
        len(texts) - len(seeing),
        json.loads(counts.read_text()) if counts.exists() else {},
        last.read_text() if last.exists() else "no test",
    )


def wait(process: subprocess.Popen, last: Path) -> int | None:
    """The exit status of a process that writes `last` when a test starts; None if it hangs."""
    begun = time.time()
    while time.time() - begun < LIMIT:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(5)
        begun = max(begun, last.stat().st_mtime if last.exists() else begun)
    return None


def relevant(reports) -> tuple[list[str], int]:
    """The reports of faults only, and the number of leaks left out because they have no frame of ours."""
    kept, foreign = [], 0
    for report in reports:
        text = re.sub(r"(?m)^==\d+==WARNING: \w+ failed to allocate .*\n", "", report)
        if "ERROR: LeakSanitizer" in text:
            leaks = [part for part in text.split("\n\n") if re.match(r"(Direct|Indirect) leak of", part)]
            ours = [leak for leak in leaks if f"({BUILD}" in leak]
            foreign += len(leaks) - len(ours)
            text = "\n\n".join(ours)
        if text.strip():
            kept.append(text)
    return kept, foreign


# The build.


def build(variant: Variant) -> str:
    """Installs interop, the tests' projects and the faults, except those whose sources have not changed."""
    flags = dict.fromkeys(("CFLAGS", "CXXFLAGS", "LDFLAGS"), variant.flags)  # which ones count depends on distutils
    environment = os.environ | flags | {"PYTHONSAFEPATH": "1", "INTEROP_CHECKOUT": str(ROOT), "INTEROP_CUDA": "compile"}
    environment["INTEROP_CHECKER"] = variant.name  # setup.py then keeps the flags for the static library too
    compiler = subprocess.run(["g++", "--version"], capture_output=True, check=True, text=True).stdout
    variant.folder.mkdir(parents=True, exist_ok=True)
    with locked(variant.folder / "lock"):
        key = fingerprint(ROOT, variant.flags, sys.version, torch.__version__, compiler)
        if not is_installed(variant, ROOT, key):
            shutil.rmtree(variant.site, ignore_errors=True)  # everything else was built with it
        built = install(variant, ROOT, key, environment)
        for path in filter(is_plain_python, sources(ROOT)):
            target = variant.site / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        environment["PYTHONPATH"] = str(build_tools(variant))
        projects = [*sorted(path.parent for path in (TESTS / "projects").glob("*/setup.py")), FAULTS]
        if shutil.which("nvcc") is None:
            projects.remove(TESTS / "projects" / "cuda")
        built += build_projects(variant, {each: fingerprint(each, key) for each in projects}, environment)
    for module in variant.site.rglob("*.so"):
        if variant.symbol not in module.read_bytes():
            raise SystemExit(f"{module} is not instrumented: it was built without {variant.flags}")
    return f"Built {', '.join(built)} with {variant.flags}" if built else f"The {variant.name} build is up to date"


def install(variant: Variant, project: Path, key: str, environment: dict[str, str]) -> list[str]:
    """Builds a project and installs it in the variant's folder. Returns its name in a list, empty if up to date."""
    if is_installed(variant, project, key):
        return []
    work = copied(variant, project)
    pip = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--upgrade"]
    build_with(variant, [*pip, "--target", str(variant.site), str(work)], environment)
    stamp(variant, project).write_text(key)
    return [name_of(project)]


def build_projects(variant: Variant, keys: dict[Path, str], environment: dict[str, str]) -> list[str]:
    """Builds the modules of the projects that have changed, and returns the names of these projects."""
    stale = [project for project, key in keys.items() if not is_installed(variant, project, key)]
    if stale:
        command = [sys.executable, str(TESTS / "build_projects.py"), str(variant.site)]
        build_with(variant, [*command, *(str(copied(variant, project)) for project in stale)], environment)
    for project in stale:
        stamp(variant, project).write_text(keys[project])
    return [name_of(project) for project in stale]


def copied(variant: Variant, project: Path) -> Path:
    """A copy of a project: in the checkout, setuptools would relink objects that an ordinary build left in `build`."""
    work = variant.folder / "work" / name_of(project)
    shutil.rmtree(work, ignore_errors=True)
    for path in sources(project):
        target = work / path.relative_to(project)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return work


def build_with(variant: Variant, command: list[str], environment: dict[str, str]) -> None:
    """Runs a build command; if it fails, exits with its complete output."""
    done = subprocess.run(
        command, cwd=variant.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)} fails with {variant.flags}:\n{done.stdout}")


def build_tools(variant: Variant) -> Path:
    """A folder with an `interop` that has the variant's build helper and declarations, and no compiled modules.

    The variant's compiled modules load only if the checker is preloaded, and compilers are slow under a checker.
    """
    package = variant.folder / "tools" / "interop"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for part in (*OF_BUILDS, "csrc", "include", "pxd", "stable"):
        (package / part).symlink_to(variant.site / "interop" / part)
    return package.parent


def sources(project: Path) -> list[Path]:
    """The source files of a project, without the outputs of a build."""
    if project == ROOT:
        top = ("setup.py", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "tools/sbom.py")
        top += ("csrc", "interop", "pxd", "stable")
        places = [ROOT / name for name in top]
    else:
        places = [project]
    found = [path for place in places for path in (place.rglob("*") if place.is_dir() else [place])]
    return sorted(
        path
        for path in found
        if path.is_file()
        and path.suffix not in {".so", ".o", ".a", ".pyc"}
        and path.name != "_build_info.py"
        and not (path.suffix == ".cpp" and path.with_suffix(".pyx").exists())
    )


def is_plain_python(path: Path) -> bool:
    """Whether a file is a part of interop that no build uses, so that a change to it requires no build."""
    parts = path.relative_to(ROOT).parts if path.is_relative_to(ROOT / "interop") else ("",)
    return path.suffix == ".py" and parts[0] == "interop" and parts[1] not in OF_BUILDS


def fingerprint(project: Path, *more: str) -> str:
    """A hash of the inputs of a project's build."""
    digest = hashlib.sha256(repr(more).encode())
    for path in sources(project):
        if not is_plain_python(path) and path.name not in {"README.md", "LICENSE"}:
            digest.update(f"{path.relative_to(project)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def is_installed(variant: Variant, project: Path, key: str) -> bool:
    file = stamp(variant, project)
    return file.exists() and file.read_text() == key


def stamp(variant: Variant, project: Path) -> Path:
    """The file with the fingerprint of the installed build."""
    return variant.site / f"{name_of(project)}.stamp"


def name_of(project: Path) -> str:
    return "interop" if project == ROOT else project.name


def library(name: str) -> str:
    """The path of a library that comes with g++."""
    done = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, check=True, text=True)
    path = done.stdout.strip()
    if not Path(path).is_absolute():
        raise SystemExit(f"g++ has no {name}; install its sanitizers (on Debian: apt-get install libgcc-12-dev)")
    return path


@contextlib.contextmanager
def locked(path: Path):
    """Keeps `make asan` and `make leaks`, which share a build, from building at the same time."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in CHECKERS:
        raise SystemExit(f"usage: python tests/checkers/run.py {'|'.join(CHECKERS)} [arguments of pytest]")
    sys.exit(main(sys.argv[1], sys.argv[2:]))
