"""tools/matrix.py makes the requested stacks and reports their test results."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TESTS

TOOLS = TESTS.parent / "tools"


@pytest.fixture
def matrix(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    return importlib.import_module("matrix")


def test_a_stack_says_what_differs(matrix):
    stack = matrix.Stack.parse("torch=2.15.0,python=/opt/python/bin/python3,numpy=2.0.*,cxx=clang++-19")
    assert stack == matrix.Stack("2.15.0", "/opt/python/bin/python3", "2.0.*", "", "clang++-19")
    assert stack.folder == "torch_2.15.0-python__opt_python_bin_python3-numpy_2.0._-cxx_clang++-19"
    assert stack.requirements(
        ["Cython==3.3.1", "numpy==2.4.6", "torch==2.13.0", "nvidia-cuda-nvrtc==13.5.37", "setuptools==84.2.1"]
    ) == [
        "Cython==3.3.1",
        "numpy==2.0.*",
        "torch==2.15.0",
        "nvidia-cuda-nvrtc",
        "setuptools",
    ]


@pytest.mark.parametrize("wrong", ["2.15.0", "torch=", "tocrh=2.15.0", "torch=2.15.0,", "torch=2.15.0,torch=2.14.1"])
@pytest.mark.extended
def test_what_is_no_stack(wrong):
    done = subprocess.run([sys.executable, TOOLS / "matrix.py", wrong], capture_output=True, text=True)
    assert done.returncode == 2
    assert f"stack {wrong!r}: expected torch=..., python=..., numpy=..., cython=..., cxx=..." in done.stderr


def test_requirements_are_those_of_the_tests(matrix):
    """Each package that a stack can choose is pinned once."""
    pinned = matrix.pinned()
    names = [line.partition("==")[0].lower() for line in pinned]
    assert all("==" in line for line in pinned)
    assert {"torch", "numpy", "cython", "pytest"} <= set(names)
    assert len(names) == len(set(names))


def test_a_command_without_a_closing_quote_is_no_compiler(matrix):
    with pytest.raises(ValueError, match="cxx must be a command as a shell reads it, got No closing quotation"):
        matrix.Stack.parse("cxx=ccache 'g++")


@pytest.fixture
def environment(matrix, tmp_path):
    """Makes the environment of a stack, with the running Python in place of the stack's and an empty checkout."""

    def make(**asked):
        result = matrix.Environment(matrix.Stack(**asked), tmp_path)
        result.checkout.mkdir(parents=True)
        result.python = Path(sys.executable)
        return result

    return make


CALLERS = {
    "CXX": "no-such-compiler",
    "CC": "no-such-compiler",
    "CXXFLAGS": "-O3",
    "INTEROP_CACHE_DIR": "elsewhere",
    "INTEROP_CUDA": "0",
    "PYTEST_ADDOPTS": "-x",
    "PYTHONPATH": "elsewhere",
    "VIRTUAL_ENV": "elsewhere",
}


def test_a_stack_has_nothing_of_its_caller(environment, monkeypatch):
    for name, value in CALLERS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mirror.invalid")
    stacks = environment(torch="2.13.0"), environment(cxx="ccache clang++-19")
    default, chosen = (stack.variables() for stack in stacks)
    assert not default.keys() & CALLERS.keys()
    assert default["UV_DEFAULT_INDEX"] == "https://mirror.invalid"  # kept, because it gives network access
    assert (chosen["CXX"], chosen["CC"]) == ("ccache clang++-19", "ccache clang-19")


def test_the_compiler_is_the_one_that_is_used(matrix, environment, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr(matrix, "VERSIONS", "print({})")  # the original imports torch each time
    expected = subprocess.run(["c++", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    assert environment().versions()["compiler"] == expected
    assert environment(cxx="env LC_ALL=C c++").versions()["compiler"] == expected
    with pytest.raises(matrix.FailedError, match=r"^no-such-compiler --version does not run: .*No such file"):
        environment(cxx="no-such-compiler").versions()


def test_what_is_already_there(matrix, tmp_path, monkeypatch):
    """The stack `here` keeps the caller's compiler, and takes no other package than this checkout's."""
    for name, value in CALLERS.items():
        monkeypatch.setenv(name, value)
    here = matrix.Here(tmp_path)
    compilers = {name: CALLERS[name] for name in ("CXX", "CC", "CXXFLAGS")}
    assert {name: value for name, value in here.variables().items() if name in CALLERS} == compilers
    assert (here.cxx, here.python, here.checkout) == (["no-such-compiler"], Path(sys.executable), matrix.ROOT)
    monkeypatch.setattr(matrix, "ROOT", tmp_path)  # another checkout
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.invalid")
    subprocess.run(["git", "-C", tmp_path, *who, "commit", "--quiet", "--allow-empty", "-m", "Begin"], check=True)
    with pytest.raises(matrix.UnavailableError, match="the package is not installed from this checkout, but from /"):
        matrix.Here(tmp_path / ".git" / "store").make()
    (tmp_path / "file").touch()
    line = matrix.run(matrix.Here(tmp_path / ".git" / "store"), [], "0", None)
    assert (line["asked"], line["unavailable"]) == ({"here": True}, True)
    assert line["error"] == "the checkout is not clean:\n?? file\n"


@pytest.mark.parametrize("inside", [True, False])
def test_results_have_no_paths_of_this_machine(matrix, monkeypatch, tmp_path, inside):
    store = matrix.ROOT / "build" / "matrix" if inside else tmp_path

    def fail(self):
        raise matrix.FailedError(f"{self.python} failed in {matrix.ROOT}/tests/conftest.py")

    monkeypatch.setattr(matrix.Environment, "make", fail)
    line = matrix.run(matrix.Environment(matrix.Stack(torch="2.10.0"), store), [], "0", None)
    assert line["error"] == "stacks/torch_2.10.0/venv/bin/python failed in tests/conftest.py"


@pytest.mark.extended
def test_a_run_that_was_stopped_is_no_result(matrix, environment):
    stack = environment()
    (stack.checkout / "test_all.py").write_text("def test_good(): pass\ndef test_bad(): assert False\n")
    line = stack.test(["-n0"])
    assert (line["passed"], line["failed"]) == (1, 1)
    for arguments, status in {("--no-such-option",): 4, ("-k", "nothing"): 5}.items():
        with pytest.raises(matrix.FailedError, match=f"pytest has not run all tests; exit status {status}:"):
            stack.test(["-n0", *arguments])
    (stack.checkout / "test_crash.py").write_text("def test_crash(): import os; os.abort()\n")
    with pytest.raises(matrix.FailedError, match="pytest has not run all tests; exit status 1:"):
        stack.test(["-n1"])
    (stack.checkout / "conftest.py").write_text("def pytest_sessionstart(): raise KeyboardInterrupt\n")
    with pytest.raises(matrix.FailedError, match="exit status 2:"):
        stack.test(["-n0"])


def test_a_line_has_what_pytest_says(matrix, tmp_path):
    (tmp_path / "test_file.py").write_text("import pytest; pytest.importorskip('no_such_module', reason='not here')")
    (tmp_path / "test_all.py").write_text("""if 1:
        import pytest
        def test_good(): pass
        def test_bad(): assert False
        def test_skipped(): pytest.skip("for a reason")
        @pytest.mark.xfail
        def test_expected(): assert False
        @pytest.fixture
        def broken(): assert False
        def test_error(broken): pass
        @pytest.fixture
        def breaks(): yield; assert False
        def test_teardown(breaks): pass
        def test_teardown_too(breaks): assert False
    """)
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", f"--rootdir={tmp_path}", tmp_path]
    assert subprocess.run([*command, f"--junit-xml={report}"], stdout=subprocess.DEVNULL).returncode == 1
    line = matrix.counts(report.read_text())
    assert line.pop("seconds") >= 0
    failures = [f"test_all::{name}" for name in ("test_bad", "test_error", "test_teardown", "test_teardown_too")]
    assert line == {
        "passed": 1,
        "failed": 4,
        "skipped": 2,
        "xfailed": 1,
        "failures": failures,
        "reasons": {"for a reason": 1, "not here (a whole file)": 1},
    }


def test_the_table_has_the_newest_of_each_stack(matrix):
    def line(torch, commit, **other):
        same = {"python": "3.13.0", "numpy": "2.4.6", "cython": "3.3.1", "compiler": "g++ 12", "date": "2026-01-01"}
        found = {"passed": 5, "failed": 0, "skipped": 2, "xfailed": 1, "failures": [], "tests": [*matrix.NOT_SLOW]}
        return same | found | {"torch": torch, "commit": commit} | other

    lines = [
        line("2.9.0", "aaa", failed=1, failures=["tests.old::test_patched_since"]),
        line("2.10.0+cpu", "bbb", failed=2, failures=["tests.one::test_a", "tests.two::test_b[x]"])
        | {"reasons": {"no GPU": 7, "no a|b": 2}},
        line("2.9.0", "ccc") | {"one binary": {"sha256": "0123abcdef"}, "reasons": {"no a|b": 9}},
        line("2.9.0", "ddd", tests=["tests/build"]),
        line("2.9.0", "fff", gpu="NVIDIA H200"),
        line("2.8.0", "ggg", error="the wheel fails"),
        line("2.7.0", "hhh"),
        line("2.7.0", "iii", error="it is not compiled"),
        {"asked": {"torch": "2.10.0"}, "tests": [*matrix.NOT_SLOW], "error": "no such compiler", "unavailable": True},
        {"asked": {"torch": "2.6.0"}, "tests": [*matrix.NOT_SLOW], "error": "torch cannot be imported"},
    ]
    for key in ("passed", "failed", "skipped", "xfailed", "failures"):
        del lines[-3][key]
    rows = matrix.section(lines).splitlines()
    assert rows[2:] == [
        "| 2.10.0+cpu | 3.13.0 | 2.4.6 | 3.3.1 | g++ 12 |  | 5 | 2 | 2 | 1 |  | 2026-01-01 | bbb |",
        "| 2.9.0 | 3.13.0 | 2.4.6 | 3.3.1 | g++ 12 | NVIDIA H200 | 5 | 0 | 2 | 1 |  | 2026-01-01 | fff |",
        "| 2.9.0 | 3.13.0 | 2.4.6 | 3.3.1 | g++ 12 |  | 5 | 0 | 2 | 1 | 0123abcd | 2026-01-01 | ccc |",
        "| 2.8.0 | 3.13.0 | 2.4.6 | 3.3.1 | g++ 12 |  | 5 | 0 | 2 | 1 |  | 2026-01-01 | ggg |",
        "| 2.7.0 | 3.13.0 | 2.4.6 | 3.3.1 | g++ 12 |  | ? | ? | ? | ? |  | 2026-01-01 | iii |",
        "",
        "Failed with torch 2.10.0+cpu, CPython 3.13.0, NumPy 2.4.6, commit bbb:",
        "",
        "- `tests.one::test_a`",
        "- `tests.two::test_b[x]`",
        "",
        "Failed with torch 2.8.0, CPython 3.13.0, NumPy 2.4.6, commit ggg:",
        "",
        "- the checks of one binary failed",
        "",
        "Failed with torch 2.7.0, CPython 3.13.0, NumPy 2.4.6, commit iii:",
        "",
        "- the tests did not begin, or did not end",
        "",
        'Why tests of these 5 stacks were skipped. "Tests" are those of the stack that skipped most.',
        "",
        "| reason | tests | stacks |",
        "|---|--:|--:|",
        "| no a&#124;b | 9 | 2 |",
        "| no GPU | 7 | 1 |",
    ]


def test_the_page_is_up_to_date(matrix):
    releases = importlib.import_module("releases")
    page = releases.page(json.loads(releases.RESULTS.read_text()))
    expected = matrix.with_section(page, matrix.BEGIN, matrix.END, matrix.section(matrix.recorded()))
    assert matrix.PAGE.read_text() == expected, "run: python tools/matrix.py"
