"""What the experiments have in common: the driver, with an experiment that measures nothing; tables."""

import json
import sysconfig
from types import SimpleNamespace

import pytest

from experiments.harness import building, driver, results
from experiments.harness.calls import summary
from experiments.harness.tables import Table, table_of_calls
from interop.cli import CommandError


class TestDriver:
    @pytest.fixture
    def run(self, monkeypatch, tmp_path):
        """Runs an experiment called empty; returns its result, and the order in which its parts were called."""

        def run(*arguments, require=lambda: None):
            order = []

            def measure(settings, options):
                order.append("measure")
                return {"found": settings["rounds"], "quick": options.quick}

            experiment = driver.Experiment(
                measure,
                settings={"rounds": 40, "steps": 7},
                quick={"rounds": 3},
                flags=["-O2"],
                builds={"other": "a while"},
                require=lambda: [order.append("require"), require()],
                add_arguments=lambda command: command.add_argument("--steps", type=int),
            )
            report = SimpleNamespace(
                PLOT="Nothing",
                tables=lambda result: [Table(("rounds", "found"), [["`all`", str(result["found"])]])],
                sentences=lambda result: "That is `all`.",
                draw=lambda result, path: path.write_text("a plot"),
            )
            module = SimpleNamespace(EXPERIMENT=experiment, __doc__="Measures nothing.")
            monkeypatch.setattr(
                driver, "load", lambda name, module_name="run": report if module_name == "report" else module
            )
            monkeypatch.setattr(driver, "build_once", lambda name, how_long: order.append(f"build {name}"))
            monkeypatch.setattr(results, "BUILD", tmp_path / "build")
            monkeypatch.setattr(results, "FOLDER", tmp_path / "docs")
            monkeypatch.setattr(results, "machine_name", lambda gpu: gpu or "here")
            driver.run("empty", list(arguments))
            (file,) = tmp_path.rglob("*.json")
            return json.loads(file.read_text()), order

        return run

    def test_what_runs_when(self, run, capsys):
        result, order = run()
        assert order == ["require", "build other", "measure"]
        assert (result["found"], result["quick"]) == (40, False)
        assert result["settings"] == {"rounds": 40, "steps": 7}
        assert result["flags"] == ["-O2"]
        assert {"date", "machine", "versions", "git"} <= result.keys()
        out = capsys.readouterr().out
        assert "│ all    │    40 │" in out
        assert "That is `all`.\nwritten: " in out

    def test_a_quick_run_and_an_option_have_other_settings(self, run):
        result, _ = run("--quick", "--steps", "5")
        assert (result["found"], result["quick"]) == (3, True)
        assert result["settings"] == {"rounds": 3, "steps": 5}

    def test_what_is_missing_is_said_before_anything_is_compiled(self, run):
        def require():
            raise CommandError("there is no such thing here")

        with pytest.raises(CommandError, match="no such thing"):
            run(require=require)

    def test_a_recorded_result_is_put_into_the_readme(self, run, tmp_path):
        readme = tmp_path / "docs" / "empty" / "README.md"
        readme.parent.mkdir(parents=True)
        readme.write_text(f"# Empty\n{results.BEGIN.format(name='empty')}\n{results.END}\n")
        run("--record")
        assert (readme.parent / "results" / "here.png").read_text() == "a plot"
        *_, table, plot, sentence, end = readme.read_text().split("\n\n")
        assert table == "| rounds | found |\n|---|--:|\n| `all` | 40 |"
        assert plot == "![Nothing](results/here.png)"
        assert (sentence, end) == ("That is `all`.", f"{results.END}\n")

    def test_a_report_may_have_a_section_of_its_own(self):
        report = SimpleNamespace(section=lambda machine, result: f"{machine}: {result}")
        assert results.section(report, "here", {}) == "here: {}"

    def test_what_is_of_no_machine_ends_the_results(self, monkeypatch, tmp_path):
        monkeypatch.setattr(results, "FOLDER", tmp_path)
        readme = f"# Empty\n{results.BEGIN.format(name='empty')}\n{results.END}\nrest\n"
        report = SimpleNamespace(ending=lambda: "of all")
        for _ in range(2):  # of a page that has it, too
            readme = results.with_section("empty", readme, report)
            assert readme.split("\n\n")[1:] == ["Nothing is recorded yet.", "of all", f"{results.END}\nrest\n"]

    def test_results_of_a_gpu_are_called_like_it(self):
        assert results.destination("lltm-cuda", True, "NVIDIA H100 80GB HBM3").name == "nvidia-h100-80gb-hbm3.json"


def test_a_module_for_many_cpythons_is_found(monkeypatch, tmp_path):
    monkeypatch.setattr(building, "BUILD", tmp_path)
    lib = tmp_path / "empty" / "lib"
    lib.mkdir(parents=True)
    ordinary = building.native_path("empty", "m")
    assert ordinary.name == "m" + sysconfig.get_config_var("EXT_SUFFIX")  # where it would lie
    (lib / "m.abi3.so").touch()
    assert building.native_path("empty", "m") == lib / "m.abi3.so"
    ordinary.touch()
    assert building.native_path("empty", "m") == ordinary


class TestTables:
    @pytest.mark.parametrize(
        ("words", "rule"), [((0,), "|---|--:|--:|"), ((0, 2), "|---|--:|---|"), (None, "| --- | --- | --- |")]
    )
    def test_columns_of_words_and_of_numbers(self, words, rule):
        assert str(Table(("a", "b", "c"), [["x", "1", "2"]], words)) == f"| a | b | c |\n{rule}\n| x | 1 | 2 |"

    def test_a_title_stands_above(self):
        assert str(Table(("a",), [], title="what it is")) == "What it is:\n\n| a |\n|---|"

    def test_calls_without_a_count_of_instructions(self):
        result = {
            "times": {"f": {"here": {"median": 12.34}, "there": {"median": 5.0}}},
            "instructions": {"f": {"here": 7}},
        }
        table = table_of_calls("a call", result, {("f", "here"): "one", ("f", "there"): "two"}, digits=1)
        assert table.rows == [["one", "12.3", "7"], ["two", "5.0", "-"]]


def test_a_summary_has_quartiles():
    assert summary([4.0, 1.0, 3.0, 2.0], 2) == {"median": 2.5, "quartiles": [1.25, 3.75]}
    assert summary([4.0, 1.0, 3.0, 2.0], 2, "inclusive") == {"median": 2.5, "quartiles": [1.75, 3.25]}
    assert summary([3.0]) == {"median": 3.0, "quartiles": [3.0, 3.0]}
