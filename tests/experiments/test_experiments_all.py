"""``python -m interop experiments --all``: all experiments as a user runs them, and the handling of failures."""

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager

import psutil
import pytest

import experiments
from experiments.harness import building, results, runner
from interop import __main__ as command_line


@pytest.fixture(scope="module")
def run():
    """All experiments, as a user runs them."""
    command = [sys.executable, "-m", "interop", "experiments", "--all", "--quick"]
    return subprocess.run(command, cwd=experiments.CHECKOUT, capture_output=True, text=True, timeout=3600)


@pytest.mark.slow
@pytest.mark.timeout(3600)
class TestQuick:
    """One run of all experiments, so that the tests of single ones need not run them again."""

    def test_none_fails(self, run):
        assert run.returncode == 0, run.stdout
        assert run.stderr == ""
        assert re.search(r"^\d+ ok(, \d+ skipped)?; \d+ s$", run.stdout, re.MULTILINE)

    @pytest.mark.parametrize("name", experiments.names())
    def test_each_leaves_a_result_that_can_be_shown(self, run, name):
        (line,) = re.findall(rf"│ {name} +│ +\d+ │ (.*) │$", run.stdout, re.MULTILINE)
        how, _, detail = line.partition(" │ ")
        if how.strip() == "skipped":
            assert "needs a CUDA device" in detail + run.stdout
            return
        file = results.destination(name, record=False)
        assert detail.strip() == str(file.relative_to(experiments.CHECKOUT))
        result = results.read(file.parent)["result"]
        report = experiments.load(name, "report")
        assert "results/here.svg" in results.answer(report, "here", result)
        assert file.with_suffix(".svg").read_text().endswith("</svg>\n")
        for recorded in results.read_recorded(name).values():
            times, known = result.get("times", {}), recorded.get("times", {})
            assert bool(times) == bool(known)
            # A quick run may leave out some of the cases, but none of the ways.
            for what in times.keys() & known.keys():
                assert sorted({*lacking(times[what], known[what])} - unavailable(name)) == [], what


def unavailable(name):
    """The ways of an experiment that this CPython cannot build, though another has recorded them."""
    if name != "one-binary":
        return set()
    ways = experiments.load(name, "ways")
    return {*ways.WAYS} - {*ways.available()}


def lacking(found, expected):
    """The keys of `expected`, at any depth, that `found` lacks."""
    if not isinstance(expected, dict):
        return []
    missing = [key for key in expected if key not in found]
    return missing + [key for name in expected if name in found for key in lacking(found[name], expected[name])]


STAND_IN = """
import sys
name, *arguments = sys.argv[1:]
print("begun with", *arguments, flush=True)
if name == "breaks":
    print("Traceback (most recent call last):")
    sys.exit("ValueError: [bold]it broke[/bold]")
if name == "dies":
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)
if name == "hangs":
    import os, time
    print(f"pid {os.getpid()}", flush=True)
    time.sleep(600)
if name == "cannot":
    print("error: this experiment needs what is not here", file=sys.stderr)
    sys.exit(77)
print(f"written: build/{name}.json and a plot")
print("the end")
"""


class TestRunner:
    """The runner, with stand-in programs for the experiments."""

    @pytest.fixture
    def run(self, monkeypatch, tmp_path, capsys):
        def run(*names, arguments=()):
            (tmp_path / "stand_in.py").write_text(STAND_IN)
            monkeypatch.setattr(runner, "COMMAND", (sys.executable, str(tmp_path / "stand_in.py")))
            monkeypatch.setattr(runner, "BUILD", tmp_path)
            monkeypatch.setattr(runner, "names", lambda: list(names))
            status = runner.run_all(list(arguments))
            return status, capsys.readouterr().out

        return run

    def test_it_goes_on_after_failures_and_names_them_at_the_end(self, run):
        status, out = run("breaks", "dies", "works")
        assert status == 1
        assert re.search(r"│ breaks +│ +\d+ │ failed +│ ValueError: \[bold\]it broke\[/bold\]", out)
        assert re.search(r"│ dies +│ +\d+ │ failed +│ ended by signal 9: Killed", out)
        assert re.search(r"│ works +│ +\d+ │ ok +│ build/works.json +│", out)
        assert re.search(r"^1 ok, 2 failed; \d+ s$", out, re.MULTILINE)
        assert "    Traceback (most recent call last):\n" in out

    def test_what_cannot_run_here_is_skipped_with_the_reason(self, run, tmp_path):
        status, out = run("cannot", "works", arguments=["--quick"])
        assert status == 0
        assert re.search(r"│ cannot +│ +\d+ │ skipped +│ this experiment needs what is not here +│", out)
        assert re.search(r"^1 ok, 1 skipped; \d+ s$", out, re.MULTILINE)
        assert (tmp_path / "works" / "run.log").read_text().startswith("begun with --quick\n")

    def test_an_interruption_ends_the_experiment_that_runs(self, run, monkeypatch):
        pids = []

        @contextmanager
        def interrupted(*_, **__):
            def shown(text, *_):
                if "pid" in text:
                    pids.append(int(text.rpartition(" ")[2]))
                    raise KeyboardInterrupt

            yield shown

        monkeypatch.setattr(runner, "progress", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run("hangs", "works")
        (pid,) = pids
        deadline = time.monotonic() + 60
        while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def test_a_signal_ends_it_too(self, tmp_path):
        (tmp_path / "stand_in.py").write_text(STAND_IN)
        program = (
            "import pathlib, sys\nfrom interop import cli\nfrom experiments.harness import runner\n"
            f"runner.COMMAND = sys.executable, {str(tmp_path / 'stand_in.py')!r}\n"
            f"runner.BUILD = pathlib.Path({str(tmp_path)!r})\nrunner.names = lambda: ['hangs']\n"
            "sys.exit(cli.run(lambda: runner.run_all([])))"
        )
        command = [sys.executable, "-c", program]
        environment = os.environ | experiments.variables()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as process:
            deadline = time.monotonic() + 60
            log = tmp_path / "hangs" / "run.log"
            while not (log.exists() and "pid" in log.read_text()):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            (child,) = psutil.Process(process.pid).children()
            process.terminate()
            assert process.wait(60) == 143
        psutil.wait_procs([child], timeout=60)
        assert not child.is_running()

    def test_the_status_of_the_command_is_that_of_the_run(self, monkeypatch):
        monkeypatch.setattr(runner, "run_all", lambda _: 1)
        assert command_line.main(["experiments", "--all", "--render"]) == 1

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--all", "lltm"], "leave out lltm"),
            (["--all", "--list"], "leave out --list"),
            (["--all", "--help"], "leave out --help"),
            (["--all", "--nonsense"], "unrecognized arguments: --nonsense"),
            (["--all", "--quick", "--record"], "leave --quick out"),
            (["--all", "--", "--steps"], "unrecognized arguments: --steps"),
        ],
    )
    def test_wrong_arguments_are_refused_before_anything_runs(self, monkeypatch, capsys, arguments, message):
        monkeypatch.setattr(runner, "run_all", lambda _: pytest.fail("it ran"))
        assert command_line.main(["experiments", *arguments]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert message in error

    def test_an_installed_package_has_none(self, monkeypatch, tmp_path, capsys):
        monkeypatch.setattr("interop.experiments.DOCS", tmp_path / "docs")
        assert command_line.main(["experiments", "--all"]) == 1
        assert "checkout" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.extended
class TestRender:
    def test_the_plots_come_from_the_json_alone(self, monkeypatch, tmp_path, capsys):
        """Works even if nothing is compiled."""
        monkeypatch.setattr(building, "build", lambda _: pytest.fail("it compiles"))
        monkeypatch.setattr(results, "FOLDER", tmp_path)
        for name in experiments.names():
            source = experiments.FOLDER / name
            folder = tmp_path / name / "results"
            folder.mkdir(parents=True)
            (tmp_path / name / "README.md").write_text((source / "README.md").read_text(encoding="utf-8"))
            recorded = sorted((source / "results").glob("*.json"), key=lambda path: path.stem)
            for path in recorded:
                (folder / path.name).write_text(path.read_text(encoding="utf-8"))
            assert command_line.main(["experiments", name, "--render"]) == 0
            assert sorted(p.stem for p in folder.glob("*.svg") if ".first" not in p.name) == [p.stem for p in recorded]
            firsts = [sorted(p.name for p in one.glob("*.first.svg")) for one in (folder, source / "results")]
            assert firsts[0] == firsts[1]
            made, there = ((folder / "README.md").read_text(encoding="utf-8") for folder in (tmp_path / name, source))
            assert results.without_note(made) == results.without_note(there)
            assert "written: " in capsys.readouterr().out
