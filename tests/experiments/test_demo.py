"""`make demo`: the set-up of its environment, its progress display, and the training of several models."""

import io
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import TESTS, tracked
from rich.console import Console

import experiments
from experiments.harness import building, display

ROOT = TESTS.parent
SET_UP = ROOT / "tools" / "set_up.py"
RUN = (
    "import sys; sys.path.insert(0, 'tools'); import set_up; from pathlib import Path; set_up.LOG = Path(sys.argv[1]); "
)
DEMO, DATA, MODEL, REPORT = (experiments.load("lltm", name) for name in ("demo", "data", "model", "report"))
PYTHON = experiments.load("lltm", "cell_python").PythonCell


@pytest.mark.long
class TestSetUp:
    def run(self, tmp_path, code, **options):
        command = [sys.executable, "-P", "-c", RUN + code, str(tmp_path / "log")]
        return subprocess.run(command, cwd=ROOT, text=True, timeout=100, **options)

    def test_a_step_is_one_line_and_what_it_prints_goes_into_the_log(self, tmp_path):
        command = [sys.executable, "-c", "import sys; print('WARNING: of no worth', file=sys.stderr)"]
        done = self.run(tmp_path, f"sys.exit(set_up.run('1/1 a step: a moment', {command}))", capture_output=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert re.fullmatch(r"1/1 a step: a moment\n    done after \d s\n", done.stdout)
        assert (tmp_path / "log").read_text() == "WARNING: of no worth\n"

    def test_on_a_terminal_the_seconds_are_counted(self, tmp_path):
        ours, theirs = pty.openpty()
        command = [sys.executable, "-c", "import time; time.sleep(1.5)"]
        done = self.run(tmp_path, f"sys.exit(set_up.run('1/1 a step', {command}))", stdout=theirs)
        os.close(theirs)
        shown = os.read(ours, 10_000).decode()
        os.close(ours)
        assert done.returncode == 0
        assert re.fullmatch(r"1/1 a step(?:\r1/1 a step \.\.\. \d s)+\r1/1 a step \.\.\. done after \d s\r\n", shown)

    def test_a_failure_shows_what_pip_said_and_where_all_of_it_is(self, tmp_path):
        """The test uses the current environment, because pip fails before it changes anything."""
        code = f"sys.exit(set_up.main(Path({sys.prefix!r}), Path('no/such.txt')))"
        done = self.run(tmp_path, code, capture_output=True)
        assert done.returncode == 1
        first, *_, last = done.stdout.splitlines()
        assert first.startswith("1/2 packages of no/such.txt: ")
        assert "No such file or directory: 'no/such.txt'" in done.stdout
        assert re.fullmatch(rf"error: .* failed with exit status 1 \(all of it: {tmp_path}/log\)", last)
        assert "compiling" not in done.stdout

    def test_an_old_python_is_named(self, tmp_path):
        code = "sys.version_info = (3, 10, 2); sys.exit(set_up.main(Path('x'), Path('y')))"
        done = self.run(tmp_path, code, capture_output=True)
        assert done.returncode == 1
        assert done.stdout == (
            "error: Python 3.11 or newer is needed, and this is 3.10; name another: make PYTHON=python3.12\n"
        )

    @pytest.mark.parametrize(
        ("code", "said"),
        [
            ("os.environ['CXX'] = 'no-such-compiler -O2'", "there is no C++ compiler: no-such-compiler is not on PATH"),
            ("sysconfig.get_path = lambda _: '/none'", "the headers of this Python are missing: there is no /none/Pyt"),
        ],
    )
    def test_what_is_missing_is_said_before_anything_is_fetched(self, tmp_path, code, said):
        code = f"import os, sysconfig; {code}; sys.exit(set_up.main(Path('x'), Path('y')))"
        done = self.run(tmp_path, code, capture_output=True)
        assert done.returncode == 1
        assert done.stdout.startswith(f"error: {said}")
        assert done.stdout.endswith("; on Debian and Ubuntu: apt install g++ python3-dev python3-venv\n")
        assert not (tmp_path / "log").exists()

    def test_make_calls_it_with_files_that_are_there(self):
        makefile = (ROOT / "Makefile").read_text()
        calls = re.findall(r"tools/set_up\.py \$\(VENV\) (\S+)", makefile)
        assert sorted(calls) == ["requirements/demo.txt", "requirements/dev.txt"]
        assert all((ROOT / call).is_file() for call in calls)
        assert {Path(call).name for call in calls} == set(
            re.findall(r'"(\w+\.txt)": ', re.search(r"HOW_LONG = .*", SET_UP.read_text())[0])
        )


class TestWaiting:
    def test_elsewhere_than_on_a_terminal_it_is_two_lines(self, capsys):
        with display.waiting("compiling"):
            assert capsys.readouterr().out == "compiling\n"
        assert re.fullmatch(r"    done after \d s\n", capsys.readouterr().out)

    def test_on_a_terminal_one_line_stays(self, monkeypatch):
        written = io.StringIO()
        monkeypatch.setattr(display, "console", Console(file=written, force_terminal=True, highlight=False))
        with display.waiting("compiling"):
            pass
        assert re.search(r"compiling \.\.\. done after \d s\n$", written.getvalue())

    def test_a_failure_is_not_done(self, capsys):
        with pytest.raises(ValueError, match="no"), display.waiting("compiling"):
            raise ValueError("no")
        assert capsys.readouterr().out == "compiling\n"


class TestRace:
    """The progress display of tasks that run side by side."""

    def all_steps(self):
        with display.race("training", ["slow", "quick"], 100) as shown:
            for number in range(100):
                shown("quick", f"loss {number}")
            for number in range(100):
                shown("slow", f"loss {number}")

    def test_elsewhere_than_on_a_terminal_it_is_a_few_lines(self, capsys):
        self.all_steps()
        first, *others = capsys.readouterr().out.splitlines()
        assert first == "training: slow 0/100, quick 25/100; quick has loss 24"
        assert len(others) == 7
        assert others[-1] == "training: slow 100/100, quick 100/100; slow has loss 99"

    def test_on_a_terminal_each_has_a_bar(self, monkeypatch):
        written = io.StringIO()
        monkeypatch.setattr(display, "console", Console(file=written, force_terminal=True, width=100))
        self.all_steps()
        *_, last = written.getvalue().split("\x1b[1A")[-1:]
        plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", written.getvalue())
        assert re.search(r"slow +━+ 100/100 0:00:00 loss 99", plain), last
        assert re.search(r"quick +━+ 100/100 0:00:00 loss 99", plain)


@pytest.mark.long
class TestTraining:
    @pytest.fixture
    def batches(self):
        return list(DATA.default().batches(4, 6, 5))

    def models(self, *names):
        result = {name: MODEL.CharacterModel(PYTHON, len(DATA.default().alphabet), 8, 16) for name in names}
        for model in result.values():
            torch.manual_seed(3)
            for parameter in model.parameters():
                torch.nn.init.normal_(parameter, std=0.1)
        return result

    def test_the_losses_are_those_of_training_step_by_step(self, batches):
        losses, seconds = DEMO.train(self.models("one", "two"), batches, lambda *_: None)
        expected = MODEL.train(self.models("one", "two"), batches, lambda _: None)
        assert losses == {name: [round(loss, 5) for loss in values] for name, values in expected.items()}
        for values in seconds.values():
            assert len(values) == len(batches)
            assert values == sorted(values)

    def test_the_quickest_is_ahead(self, batches):
        """The quickest model takes its steps first, by a fake clock, because a busy machine may delay any model."""
        models = self.models("slow", "quick")
        seconds, order = [0], []
        for name, takes in (("slow", 3), ("quick", 1)):
            models[name].register_forward_hook(lambda *_, takes=takes: seconds.append(seconds[-1] + takes))
        _, used = DEMO.train(models, batches, lambda way, _: order.append(way), clock=lambda: seconds[-1])
        assert order == ["slow", "quick", "quick", "quick", "slow", "quick", "quick", "slow", "slow", "slow"]
        assert used == {"slow": [3, 6, 9, 12, 15], "quick": [1, 2, 3, 4, 5]}

    def test_nothing_is_imported_or_compiled_that_the_demo_does_not_need(self, forked):
        code = (
            "import sys; sys.path.insert(0, 'docs')\n"
            "import experiments; experiments.load('lltm', 'demo')\n"
            "print([name for name in ('torch._inductor', 'psutil', 'pybind11', 'scipy') if name in sys.modules])"
        )
        assert forked(code, ROOT / "docs") == "[]\n"
        ways = experiments.load("lltm", "ways")
        assert [ways.MODULES[way] for way in DEMO.WAYS[1:]] == ["cell_cpp", "cell_cython", "cell_fused"]


class TestReport:
    @pytest.fixture
    def result(self):
        one = {"median": 1234.5, "quartiles": [1200.0, 1300.0]}
        return {
            "settings": DEMO.SETTINGS,
            "agreement": {"float32": dict.fromkeys(DEMO.WAYS[1:], 3e-7) | {"C++": 4e-7}},
            "training": {
                "text": "a$b$.txt",
                "steps": 2,
                "losses": {way: [3.5, 2.5] for way in DEMO.WAYS},
                "seconds": {way: [0.5, 1.0] for way in DEMO.WAYS},
            },
            "times": {
                what: dict.fromkeys((*DEMO.WAYS, "products"), one) | {"Cython": {"median": 617.25, "quartiles": [1, 2]}}
                for what in REPORT.LABELS
            },
        }

    def test_the_table_fits_into_a_small_terminal(self, result, monkeypatch):
        written = io.StringIO()
        monkeypatch.setattr(display, "console", Console(file=written, width=80))
        display.show(DEMO.table(result))
        lines = written.getvalue().splitlines()
        assert "│ Cython       │    500.0 │ 3.00 │     617 │      617 │  617 │ 2.00 x │" in lines
        assert DEMO.agreed(result).endswith("at most 4e-07 of the largest value.")

    def test_the_plot_has_a_line_and_bars_for_each_way(self, result, tmp_path):
        DEMO.draw(result, tmp_path / "plot.svg")
        text = (tmp_path / "plot.svg").read_text()
        assert all(text.count(REPORT.COLOURS[way]) >= 3 for way in DEMO.WAYS)
        assert REPORT.COLOURS["Cython op"] not in text


def test_some_modules_alone_are_built(monkeypatch, tmp_path):
    monkeypatch.setattr(building, "FOLDER", tmp_path)
    monkeypatch.setattr(building, "BUILD", tmp_path / "build")
    (tmp_path / "empty").mkdir()
    (tmp_path / "build" / "empty" / "lib").mkdir(parents=True)
    (tmp_path / "empty" / "setup.py").write_text("import os\nprint(os.environ.get('EXPERIMENT_MODULES'))\n")

    def built(*modules):
        building.build("empty", *modules)
        return (tmp_path / "build" / "empty" / "build.log").read_text()

    assert built(("one", "two")) == "one two\n"
    assert building.is_built("empty", ("one", "two"))
    assert not building.is_built("empty")
    assert not building.is_built("empty", ("one",))
    assert built() == "None\n"
    assert building.is_built("empty")
    assert building.is_built("empty", ("one", "two"))  # which all modules include
    (tmp_path / "empty" / "setup.py").write_text("exit(1)")
    with pytest.raises(building.CommandError):
        built(("one",))
    assert not building.is_built("empty", ("one", "two"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_from_nothing_to_the_table(tmp_path):
    """`make demo` works in a copy without an environment, as a newcomer has it. It uses pip's cache."""
    copy = tmp_path / "checkout"
    for name in tracked():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    before = {name: (copy / name).read_bytes() for name in tracked()}
    # CFLAGS stay, because those of the tests compile faster. With MAKELEVEL, make is an inner one and prints folders.
    outer = ("PYTHONPATH", "MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    environment = {name: value for name, value in os.environ.items() if name not in outer}
    command = ["make", "demo", f"PYTHON={sys._base_executable}"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, env=environment, timeout=1500)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert "WARNING" not in done.stdout
    lines = done.stdout.splitlines()
    assert [line.split(" ")[0] for line in lines[:8:2]] == ["1/3", "2/3", "3/3", "compiling"]
    assert all(re.match(r" +done after \d+ s", line) for line in lines[1:8:2])
    for way in DEMO.WAYS:
        assert re.search(rf"^│ {re.escape(way)} +│( +[\d.]+ │){{5}} +[\d.]+ x │$", done.stdout, re.MULTILINE)
    (plot,) = re.findall(r"^plot: (.*)$", done.stdout, re.MULTILINE)
    assert (copy / plot).read_text().endswith("</svg>\n")
    assert [name for name, text in before.items() if (copy / name).read_bytes() != text] == []
    assert not set((copy / "docs").rglob("*.json")) - {copy / name for name in tracked("docs")}
