"""tools/port_tests.py: how it counts the originals' tests, and that it records no run that did not end."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from conftest import TESTS, load_script

SUITE = """
import pytest

def test_passes(): pass
@pytest.mark.parametrize("n", range(3))
def test_of_numbers(n): assert n != FAILING
@pytest.mark.parametrize("n", range(2))
def test_zero_elements(n): assert n == 0 or not BY_DESIGN
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.xfail
def test_expected(): assert False
"""
COUNTS = {"passed": 4, "failed": 1, "by design": 1, "skipped": 2}


@pytest.fixture
def tool():
    return load_script(TESTS.parent / "tools" / "port_tests.py")


def run_pytest(folder, text=SUITE, failing=1, by_design=True):
    """Pytest's report of tests, and its status."""
    file, report = folder / "test_original.py", folder / "report.xml"
    file.write_text(f"FAILING, BY_DESIGN = {failing}, {by_design}\n{text}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # they take most of the time
    done = subprocess.run(
        [*command, f"--junitxml={report}", str(file)], cwd=folder, env=environment, capture_output=True
    )
    return report, done.returncode


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The report of a run with each outcome."""
    report, status = run_pytest(tmp_path_factory.mktemp("ended"))
    assert status == 1
    return report


class TestCounted:
    def test_each_outcome(self, tool, ended, capsys):
        assert tool.counted(ended, 1) == COUNTS
        assert capsys.readouterr().out == "  FAILS: test_of_numbers[1]\n"

    def test_all_pass(self, tool, tmp_path):
        report, status = run_pytest(tmp_path, failing=None, by_design=False)
        assert tool.counted(report, status) == {"passed": 6, "failed": 0, "by design": 0, "skipped": 2}
        with pytest.raises(ValueError, match="status 1, which does not fit"):
            tool.counted(report, 1)

    @pytest.mark.parametrize(
        "broken",
        [
            "@pytest.fixture\ndef f(): raise OSError\ndef test_it(f): pass",
            "@pytest.fixture\ndef f():\n    yield\n    raise OSError\ndef test_it(f): pass",
            "@pytest.fixture\ndef f():\n    yield\n    raise OSError\ndef test_it(f): assert False",
        ],
        ids=["setup", "teardown", "test and teardown"],
    )
    def test_an_error_around_a_test_is_a_failure(self, tool, tmp_path, broken):
        assert tool.counted(*run_pytest(tmp_path, f"import pytest\n{broken}"))["failed"] >= 1

    @pytest.mark.parametrize(
        "text", ["import nothing_of_this_name", "", "def test_it(): import os; os._exit(0)", "def test_it(: pass"]
    )
    def test_tests_that_did_not_run(self, tool, tmp_path, text):
        with pytest.raises(ValueError, match=r"status [2-5]|cannot be read"):
            tool.counted(*run_pytest(tmp_path, text))

    @pytest.mark.parametrize("part", [0, 0.5, 0.99])
    def test_a_report_that_was_cut(self, tool, ended, tmp_path, part):
        text = ended.read_text()
        (tmp_path / "report.xml").write_text(text[: int(part * len(text))])
        with pytest.raises(ValueError, match="the report cannot be read"):
            tool.counted(tmp_path / "report.xml", 1)

    def test_a_report_without_some_tests(self, tool, ended, tmp_path):
        head, _, tail = ended.read_text().rpartition("<testcase ")
        (tmp_path / "report.xml").write_text(head + tail[tail.index("</testsuite>") :])
        with pytest.raises(ValueError, match="the report has 7 tests, and not all"):
            tool.counted(tmp_path / "report.xml", 1)

    def test_a_status_that_does_not_fit(self, tool, ended):
        with pytest.raises(ValueError, match="status 0, which does not fit"):
            tool.counted(ended, 0)

    @pytest.mark.parametrize("status", [2, 3, 4, 5, -9])
    def test_pytest_did_not_end(self, tool, ended, status):
        with pytest.raises(ValueError, match=f"pytest ended with status {status}"):
            tool.counted(ended, status)


@pytest.fixture
def original(tmp_path, tool, monkeypatch):
    """A port whose source distribution has tests; they import its package, and the module in C++ is from the plugin."""
    source = tmp_path / "work" / "original-1.0"
    for path, text in {
        "original/__init__.py": "import _original\n",
        "tests/test_original.py": "import original\nFAILING, BY_DESIGN = 1, True\n" + SUITE,
        "experiments/__init__.py": "",
        "experiments/ports/__init__.py": "",
        "experiments/ports/fake/__init__.py": "",
        "experiments/ports/fake/in_place.py": "import sys, types\nsys.modules['_original'] = types.SimpleNamespace()\n",
    }.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(text)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(
        tool.experiments, "load", lambda name, module: SimpleNamespace(unpacked=lambda port, work: source)
    )
    return SimpleNamespace(
        name="original", requirement="original==1.0", module="original", repository="https://there/original",
        tests=("tests/test_*.py",), package=".", source=source,
    )  # fmt: skip


class TestTestsOf:
    def test_those_of_the_source_distribution(self, tool, original):
        assert tool.tests_of("fake", original, None) == {"from": "source distribution", "files": 1, **COUNTS}

    def test_those_of_a_clone(self, tool, original, tmp_path):
        tests = original.source / "tests"
        assert tests.rename(tmp_path / "elsewhere")
        assert tool.tests_of("fake", original, tmp_path) == NONE
        (tmp_path / "original").mkdir()
        (tmp_path / "elsewhere").rename(tmp_path / "original" / "tests")
        assert tool.tests_of("fake", original, tmp_path) == {"from": "repository", "files": 1, **COUNTS}

    def test_a_crash(self, tool, original):
        """A report of an earlier run does not count."""
        tool.tests_of("fake", original, None)
        (original.source / "tests" / "test_crash.py").write_text("import os\ndef test_it(): os.kill(os.getpid(), 9)\n")
        with pytest.raises(SystemExit, match=r"original==1\.0 did not run to the end: .* status -9"):
            tool.tests_of("fake", original, None)


GOOD = {"from": "repository", "files": 2, "passed": 7, "failed": 0, "by design": 1, "skipped": 0}
BAD = GOOD | {"failed": 2}
NONE = {"from": "", "files": 0, **dict.fromkeys(COUNTS, 0)}


class TestMain:
    @pytest.fixture
    def record(self, tool, tmp_path, monkeypatch):
        """Runs the program with given results of two ports. Returns its status and what it has recorded."""
        file = tmp_path / "tests.json"
        file.write_text('"as before"')
        monkeypatch.setattr(tool, "RECORDED", file)
        monkeypatch.setattr(tool.building, "build", lambda name: None)
        ports = {name: SimpleNamespace(requirement=f"{name}==1.0") for name in ("one", "two")}
        monkeypatch.setattr(tool.experiments, "load", lambda *names: SimpleNamespace(load_ports=lambda: ports))

        def run(one, two, *arguments):
            def tests_of(name, port, folder):
                if isinstance(result := {"one": one, "two": two}[name], SystemExit):
                    raise result
                return result

            monkeypatch.setattr(tool, "tests_of", tests_of)
            monkeypatch.setattr(sys, "argv", ["port_tests.py", *arguments])
            try:
                return tool.main(), json.loads(file.read_text())
            except SystemExit as error:
                return error.code, json.loads(file.read_text())

        return run

    def test_the_file(self, record):
        status, written = record(GOOD, GOOD, "--record")
        assert not status
        assert written["ports"] == {"one==1.0": GOOD, "two==1.0": GOOD}
        assert written.keys() == {"date", "git", "versions", "ports"}

    def test_only_with_record(self, record):
        assert record(GOOD, GOOD) == (False, "as before")

    def test_a_failure_is_recorded_as_one(self, record):
        status, written = record(GOOD, BAD, "--record")
        assert status
        assert written["ports"]["two==1.0"]["failed"] == 2

    @pytest.mark.parametrize(
        ("two", "message"), [(NONE, "no tests of two==1.0: give FOLDER"), (SystemExit("did not run"), "did not run")]
    )
    def test_nothing_of_an_incomplete_run(self, record, two, message):
        status, written = record(GOOD, two, "--record")
        assert message in status
        assert written == "as before"
