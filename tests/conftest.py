"""Builds the projects that the tests import, and builds them again only when one of their inputs changes."""

import gc
import hashlib
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import Cython
import pytest
import torch
from forkserver import ForkServer

import interop
from experiments import FOLDER, load
from interop import __main__ as command_line
from interop.build.cuda import find_toolkit
from interop.jit.cache_folder import locked
from interop.paths import get_source_dir, get_stable_dir
from interop.private import make_folders
from interop.stable_abi import release_of
from interop.toolchain import MINIMUM_STABLE, is_gcc

TESTS = Path(__file__).resolve().parent
PROJECTS = TESTS / "projects"
BUILD = TESTS.parent / "build" / "tests"
INSTALLED = ("consumer", "plain_cxx")
"""The projects that pip installs, as for a user."""

needs_stable = pytest.mark.skipif(
    release_of(torch.__version__) < MINIMUM_STABLE, reason="this torch is too old for modules for many releases"
)
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
"""Whether this CPython was built to run without a GIL."""
not_in_debug_python = partial(pytest.mark.skipif, hasattr(sys, "gettotalrefcount"))
"""Skips a test under a CPython that was built with --with-pydebug, for the keyword `reason`."""
leaves_daemon_threads = pytest.mark.skipif(
    "--with-address-sanitizer" in (sysconfig.get_config_var("CONFIG_ARGS") or ""),
    reason="CPython itself reads the freed state of a daemon thread, which its AddressSanitizer reports",
)
owns_to_the_end = pytest.mark.unchecked(by="leaks", reason="it leaves objects alive at the end of its process")
"""Of a test in which a thread, a cycle or a leak on purpose keeps them."""
ENDS = [
    "globals",
    pytest.param("a daemon thread", marks=[owns_to_the_end, leaves_daemon_threads]),
    "an exit function",
    pytest.param("a leaked storage", marks=owns_to_the_end),
]
"""What owns memory of the bridges when the interpreter ends."""


def compiles(*checkers):
    """Marks a test that compiles while it runs, which these checkers therefore leave out."""

    def mark(test):
        for by in checkers:
            test = pytest.mark.unchecked(by=by, reason="compiles while it runs")(test)
        return test

    return mark


needs_limited_api = pytest.mark.skipif(FREE_THREADED, reason="a free-threaded CPython has no Limited API")
# A release of torch other than the one that runs: the one that the documentation names, if possible.
OTHER_TORCH = "2.12" if release_of(torch.__version__) == (2, 11) else "2.11"
OTHER_ABI = f"torch_{OTHER_TORCH.replace('.', '_')}"
IMPORT_INTERPRETERS = (
    f"import {'_interpreters' if sys.version_info >= (3, 13) else '_xxsubinterpreters'} as interpreters"
)
"""For programs that make subinterpreters: CPython renamed the module in 3.13."""
INSTRUCTION_SETS = ("default", "avx2", "avx512")
"""What ATEN_CPU_CAPABILITY accepts on x86, from the oldest on."""
_CAPABILITY = torch.backends.cpu.get_cpu_capability().lower()
HAVING = INSTRUCTION_SETS[: 1 + (INSTRUCTION_SETS.index(_CAPABILITY) if _CAPABILITY in INSTRUCTION_SETS else 0)]
"""Those that this CPU has. With another one, torch itself ends with an illegal instruction."""
each_instruction_set = pytest.mark.parametrize(
    "capability",
    [
        pytest.param(name, marks=pytest.mark.skipif(name not in HAVING, reason=f"this CPU has no {name}"))
        for name in INSTRUCTION_SETS
    ],
)
with_precompiled_headers = pytest.mark.skipif(not is_gcc(), reason="load precompiles no headers with this compiler")

BUILT = (  # the slowest to build come first
    "kernels",
    "library",
    "schema_types",
    "handwritten",
    "streams",
    "nvrtc",
    "call_forms",
    "mirrors",
    "bridges",
    "memviews",
    *(["stable"] if release_of(torch.__version__) >= MINIMUM_STABLE else []),
    "dlpack",
    "vectors",
    "types",
)
"""The projects that exist only for their modules. They are built together."""

PACKAGE = Path(interop.__file__).parent
HEADERS = (Path(interop.get_pxd_dir()), Path(interop.get_include()), Path(get_stable_dir()))
TOOLS = (
    Path(get_source_dir(), "bootstrap.cpp"),
    *(PACKAGE / part for part in ("abi", "build", "cython", "errors.py", "paths.py", "stable_abi.py", "toolchain.py")),
)
"""Everything in the package that takes part in making modules from sources."""


def pytest_addoption(parser):
    parser.addoption("--require-cuda", action="store_true", help="fail where there is no CUDA device, or no nvcc")


def pytest_configure(config):
    if config.getoption("--require-cuda") and not torch.cuda.is_available():
        raise pytest.UsageError(f"there is no CUDA device: torch is {torch.__version__}, CUDA {torch.version.cuda}")
    # Code that is compiled for a test runs once or twice. The optimiser would take longer than it saves.
    os.environ.setdefault("CFLAGS", "-O0 -g0")
    # For the same reason Inductor precompiles no headers, and keeps no pool of compile processes.
    os.environ.setdefault("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    # Nor does it compile a program for each instruction set, to find out which the CPU has: it uses none of them.
    os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "0")
    # For the experiments' builds, in this process and in those that tests start.
    os.environ.setdefault("INTEROP_CUDA", cuda_mode())


def cuda_mode():
    """INTEROP_CUDA for the tests: compile wherever possible. nvcc and torch must be of the same CUDA major version."""
    if torch.version.cuda is None:
        return "compile"
    found = find_toolkit()
    fits = not isinstance(found, str) and found.version[0] == int(torch.version.cuda.partition(".")[0])
    return "1" if fits else "0"


# Fixtures that start a process with torch, or compile.
LONG = {"bare", "jit_cache", "limited", "notebook"}

# An experiment's modules are compiled as it measures them. Tests that use them wait for the run of all experiments.
SLOW = {"lltm", "lltm_cuda"}

# What `make gpu-test` collects. Other folders import packages that a machine with a GPU may lack.
FOR_GPUS = ("bridges", "cuda")

# These files start first: after a late start, one worker alone would end with them.
FIRST = ("test_experiments_all", "test_package", "test_abi", "test_operators", "test_jit_imports", "test_cuda_build")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: FIRST.index(item.path.stem) if item.path.stem in FIRST else len(FIRST))
    for item in items:
        if LONG.intersection(item.fixturenames):
            item.add_marker(pytest.mark.long)
        if SLOW.intersection(item.fixturenames):
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("cuda") and item.path.relative_to(TESTS).parts[0] not in FOR_GPUS:
            raise pytest.UsageError(f"`make gpu-test` does not collect {item.path}, which has tests marked cuda")
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("cuda"):
                item.add_marker(pytest.mark.skip(reason="there is no CUDA device"))


@pytest.fixture(scope="module", autouse=True)
def frozen():
    """Excludes older objects from garbage collection, which many tests request and which would visit all of them."""
    gc.collect()
    gc.freeze()


def run(command, **options):
    """Runs a command. The message of a failure is its whole output, which has the errors of a compiler."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise AssertionError(
            f"{' '.join(map(str, command))}\nexit status {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def with_own_gil(**variables):
    """The environment variables of a process whose modules decide whether the GIL is on, with `variables`."""
    return {key: value for key, value in os.environ.items() if key != "PYTHON_GIL"} | variables


def load_script(path):
    """The program at `path` as a module, which finds its neighbours as when it runs."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(path.parent)
        spec.loader.exec_module(module)
    return module


def tracked(*patterns):
    """The tracked files that exist; skips the test in a copy without git."""
    listed = subprocess.run(["git", "ls-files", "--", *patterns], cwd=TESTS.parent, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout, so there is no list of files to compare with")
    return {name for name in listed.stdout.splitlines() if (TESTS.parent / name).exists()}


def fingerprint(*folders, extra=()):
    """A hash of the inputs of a compiled module: `folders`, declarations, headers, tools, versions, flags."""
    return digest_of(*TOOLS, *HEADERS, *folders, extra=extra)


def digest_of(*places, extra=()):
    """A hash of the sources in `places`, of versions and of compiler flags."""
    flags = [os.environ.get(name) for name in ("CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS")]
    digest = hashlib.sha256(repr((sys.version, torch.__version__, Cython.__version__, flags, extra)).encode())
    for place in map(Path, places):
        assert place.exists(), place
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if path.suffix in {".py", ".pyx", ".pxd", ".h", ".c", ".cpp", ".cu", ".cuh"}:
                digest.update(f"{path.relative_to(place)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def write_whole(path, text):
    """Writes a file unless it has that text already. The write is atomic, because other tests may read the file."""
    if not path.exists() or path.read_text() != text:
        path.with_suffix(f".{os.getpid()}").write_text(text)
        path.with_suffix(f".{os.getpid()}").replace(path)


@contextmanager
def built(folder, wanted):
    """Yields whether `folder` must be made, keeps other processes from making it too, and records that it was made.

    `wanted` is the hash of its inputs.
    """
    stamp = folder.parent / f"{folder.name}.stamp"
    with locked(stamp.with_suffix(".lock")):
        missing = not stamp.exists() or stamp.read_text() != wanted
        if missing:
            stamp.unlink(missing_ok=True)
        yield missing
        stamp.write_text(wanted)


def install_project(project, site, also=(), extra=(), env=os.environ):
    """Installs a copy of the project `project` into the folder `site` with pip, as a user would; cached.

    `also` are other folders with sources of it.
    """
    with built(site / project.name, fingerprint(project, *also, extra=extra)) as missing:
        if missing:
            work = BUILD / "work" / f"{site.name}-{project.name}"
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(project, work)
            pip = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--upgrade"]
            run([*pip, "--target", site, work], env=env)


def build_projects(projects, site):
    """Builds the modules of several projects into the folder `site`, without pip and in one process; cached.

    Their build folders stay, so that only changed sources are compiled again.
    """
    with ExitStack() as stack:
        stale = [each for each in projects if stack.enter_context(built(site / each.name, fingerprint(each)))]
        if stale:
            copies = [copy_to_build(project, BUILD / "work" / f"{site.name}-{project.name}") for project in stale]
            run([sys.executable, TESTS / "build_projects.py", site, *copies])


def copy_to_build(project, copy):
    """Copies a project over its older copy, which keeps the build outputs. Files keep their dates.

    The copy starts afresh after changes that ninja does not see: other tools, and added or removed files.
    """
    kept, key = copy / "kept", digest_of(*TOOLS, extra=sorted(path.name for path in project.rglob("*")))
    if not kept.exists() or kept.read_text() != key:
        shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(project, copy, dirs_exist_ok=True)
    kept.write_text(key)
    return copy


@pytest.fixture(scope="session")
def site():
    """A folder with the test projects installed. INTEROP_TEST_SITE names a folder that has them already."""
    ready = os.environ.get("INTEROP_TEST_SITE")
    if ready:
        return Path(ready)
    folder = BUILD / "site"
    with ThreadPoolExecutor() as pool:
        jobs = [pool.submit(build_projects, [PROJECTS / name for name in BUILT], folder)]
        jobs += [pool.submit(install_project, PROJECTS / name, folder) for name in INSTALLED]
    for job in jobs:
        job.result()
    return folder


@pytest.fixture(scope="session")
def nvrtc_site():
    """The same folder with only the project for kernels from strings: a machine with a GPU needs no more."""
    ready = os.environ.get("INTEROP_TEST_SITE")
    if ready:
        return Path(ready)
    build_projects([PROJECTS / "nvrtc"], BUILD / "site")
    return BUILD / "site"


@pytest.fixture
def command(capsys):
    """Runs the command line in this process. Returns exit status, standard output and standard error."""

    def run_command(*arguments):
        status = command_line.main([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return run_command


@pytest.fixture(scope="session")
def toolkit(request):
    """The CUDA toolkit. Compiling kernels needs nvcc, but neither a GPU nor a torch with CUDA."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LD_PRELOAD", raising=False)  # a checker's library, with which nvcc itself may crash
        found = find_toolkit()
    if os.environ["INTEROP_CUDA"] == "0" and not isinstance(found, str):
        found = f"nvcc is of CUDA {found.version[0]}, and torch {torch.__version__} is for CUDA {torch.version.cuda}"
    if isinstance(found, str):
        give_up = pytest.fail if request.config.getoption("--require-cuda") else pytest.skip
        give_up(f"CUDA kernels cannot be compiled: {found}")
    return found


@pytest.fixture(scope="session")
def cuda_site(toolkit):
    """A folder with the CUDA project."""
    ready = os.environ.get("INTEROP_TEST_SITE")
    if ready:
        return Path(ready)
    folder = BUILD / "cuda-site"
    install_project(
        PROJECTS / "cuda",
        folder,
        also=[FOLDER / "lltm-cuda"],  # its kernels are emulated
        extra=(os.environ["INTEROP_CUDA"], toolkit),
        env=os.environ | {"INTEROP_CHECKOUT": str(TESTS.parent)},
    )
    return folder


@pytest.fixture(scope="session")
def cuda_cell(toolkit):
    """The module with the LLTM's CUDA kernels, those of torch.ops.lltm.fused."""
    return load("lltm-cuda", "ways").module()


@pytest.fixture(scope="session")
def emulated(cuda_site):
    """The module with CUDA kernels that run on the host."""
    return import_from(cuda_site, "emulated")


@pytest.fixture(scope="session")
def cuda_operators(cuda_site):
    """The module with CUDA kernels; its operators are torch.ops.interop_cuda_test."""
    return import_from(cuda_site, "cuda_operators")


@pytest.fixture(scope="session")
def bridged(site):
    """The module that uses the converters from Cython."""
    return import_from(site, "bridged")


@pytest.fixture(scope="session")
def dlpacked(site):
    """The module that uses DLPack from Cython."""
    return import_from(site, "dlpacked")


@pytest.fixture(scope="session")
def consumer(site):
    """The consumer module, imported into this process."""
    return import_from(site, "consumer")


@pytest.fixture(scope="session")
def plain(site):
    """The module of plain C++ that includes our headers."""
    return import_from(site, "plain")


@pytest.fixture(scope="session")
def mirrors(site):
    """The module that uses the exact mirror of torch's header."""
    return import_from(site, "mirrors")


@pytest.fixture(scope="session")
def pytypes(site):
    """The module that uses the Python-side types: dtypes, devices and the like."""
    return import_from(site, "pytypes")


@pytest.fixture(scope="session")
def handwritten(site):
    """The module that uses the parts of ATen that torch writes by hand."""
    return import_from(site, "handwritten")


@pytest.fixture(scope="session")
def gradients(site):
    """The module with differentiable functions."""
    return import_from(site, "gradients")


@pytest.fixture(scope="session")
def forward(site):
    """The module with functions and operators that have a forward-mode derivative."""
    return import_from(site, "forward")


@pytest.fixture(scope="session")
def mapped(site):
    """The module with operators that have rules for vmap."""
    return import_from(site, "mapped")


@pytest.fixture(scope="session")
def operators(site):
    """The module that registers operators; they are torch.ops.interop_test."""
    return import_from(site, "operators")


@pytest.fixture(scope="session")
def symbolic(site):
    """The module with operators for symbolic sizes, some of which ask for the number of a size."""
    return import_from(site, "symbolic")


@pytest.fixture(scope="session")
def failing(site):
    """The module whose kernels and gradients raise."""
    return import_from(site, "failing")


@pytest.fixture(scope="session")
def vectors(site):
    """The module with vectorised loops around interop.vector_math."""
    return import_from(site, "vectors")


@pytest.fixture(scope="session", params=["call_forms", pytest.param("stable_call_forms", marks=needs_stable)])
def call_forms(site, request):
    """The modules with every call form of tests/projects/call_forms/table.py, for one release and for many."""
    return import_from(site, request.param)


def import_from(site, name):
    """Imports the module `name` from the folder `site`."""
    if sys.path[0] != str(site):  # before this folder, which has a package with the name of one of the modules
        sys.path.insert(0, str(site))
    return importlib.import_module(name)


@pytest.fixture(scope="session")
def jit_cache():
    """The folder of modules that are compiled while tests run. The next run finds unchanged modules there."""
    folder = BUILD / "jit"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INTEROP_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture
def own_cache(jit_cache, tmp_path, monkeypatch):
    """A cache that is empty but for links to the precompiled headers, each of which would take ten seconds."""
    for manifest in (jit_cache / "jit" / "headers").glob("*/manifest.json"):
        copy = tmp_path / "cache" / "jit" / "headers" / manifest.parent.name
        make_folders(copy)
        for file in manifest.parent.iterdir():
            os.link(file, copy / file.name)
    monkeypatch.setenv("INTEROP_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def notebook(jit_cache, tmp_path_factory):
    """Runs cells in a Jupyter kernel, with %%torch_cython."""
    from notebooks import started  # here, because few test files need Jupyter

    with started(tmp_path_factory.mktemp("notebook")) as result:
        yield result


@pytest.fixture
def bare():
    """Runs Python code in a new process, which has imported nothing yet; returns its output."""
    return in_process(start_bare)


def start_bare(code, path, seconds):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*path, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-P", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=seconds)


@pytest.fixture(scope="session")
def fork_server():
    """The server that forks the processes of `forked`."""
    server = ForkServer()
    yield server
    server.stop()


@pytest.fixture
def forked(fork_server):
    """As `bare`, but a hundred times as fast: the process has already imported torch, NumPy and interop."""
    if "INTEROP_CHECKER" in os.environ:  # LeakSanitizer itself may crash in a forked process
        return in_process(start_bare)
    return in_process(fork_server.run)


def in_process(start):
    """Makes the function of `bare` and `forked` from one that starts a process."""

    def run_in_process(code, *path, check=True, seconds=300):
        done = start(code, [str(folder) for folder in path], seconds)
        if check and done.returncode:
            raise AssertionError(done.stderr)
        return done.stdout if check else done

    return run_in_process


@pytest.fixture
def fake_gpus(forked, site):
    """Runs code in a new process with eight fake CUDA devices, which only record what streams wait for.

    `on(tensor, i)` is a tensor that claims to be on device i, over the memory of a CPU tensor.
    """
    before = """if 1:
        import gc, sys, weakref
        import numpy as np, torch, interop
        import fake_devices, fake_pointers, fakes, streams
        from pytest import raises
        fake_pointers.enable()
        fake_devices.enable()
        def on(tensor, index=0):
            fake_pointers.know(tensor.data_ptr(), index)
            return fakes.on_device(tensor, index)
        def written():
            return [line for line in fake_devices.written() if not line.startswith("destroy")]
    """
    if torch.version.cuda:
        pytest.skip("devices are made up only for a torch without CUDA")
    return lambda code: forked(before + textwrap.indent(textwrap.dedent(code), " " * 8), site, TESTS / "bridges")


@pytest.fixture
def two_threads():
    """torch computes on two threads, even on a machine with one core."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(threads)
