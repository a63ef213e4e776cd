"""The common code of the experiments: the driver, with an experiment that measures nothing; results, plots, tables."""

import json
import re
import subprocess
import sysconfig
from types import SimpleNamespace

import pytest

import experiments
from experiments.harness import age, building, driver, environment, overview, plots, results, sources
from experiments.harness.calls import summary
from experiments.harness.tables import Table, table_of_calls
from interop.cli import CommandError


def mark(part):
    return results.BEGIN.format(part=part, name="empty")


def page():
    """The README.md of an experiment before anything is written into it."""
    between = "\n## Question\n".join(f"{mark(part)}\n{results.END.format(part=part)}" for part in results.PARTS)
    return f"# Empty\n{between}\nrest\n"


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
                MEASURED=(),
                answer=lambda result: f"It is {result['found']}.",
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
        readme.write_text(page())
        run("--record")
        assert (readme.parent / "results" / "here.svg").read_text() == "a plot"
        title, answer, plot, question, conditions, table, sentence, end = readme.read_text().split("\n\n")
        assert (title, answer) == (f"# Empty\n{mark('answer')}", "**It is 40.**")
        assert plot == "![Nothing](results/here.svg)"
        assert question == f"{results.END.format(part='answer')}\n## Question\n{mark('results')}"
        assert "load " in conditions
        assert table == "| rounds | found |\n|---|--:|\n| `all` | 40 |"
        assert (sentence, end) == ("That is `all`.", f"{results.END.format(part='results')}\nrest\n")

    def test_a_report_may_have_a_section_of_its_own(self):
        report = SimpleNamespace(section=lambda result: f"all of {result}")
        assert results.section(report, {}) == "all of {}"

    def test_the_newest_result_answers_and_the_plots_of_others_stand_further_down(self, monkeypatch, tmp_path):
        monkeypatch.setattr(results, "FOLDER", tmp_path)
        report = SimpleNamespace(
            PLOT="Years",
            MEASURED=(),
            answer=lambda result: f"In {result['date']}.",
            section=lambda result: f"of {result['date']}",
        )
        for machine, date in (
            ("abacus", "1999-12-31"),
            ("loom", "2026-01-01"),
            ("loom-free-threaded", "2026-01-02"),
            ("quill", "1066-10-14"),
        ):
            path = tmp_path / "empty" / "results" / f"{machine}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"date": date}))
        answer, rest = results.with_results("empty", page(), report).split("## Question")
        assert "**In 2026-01-01.**\n\n![Years](results/loom.svg)" in answer
        assert "loom.svg" not in rest
        assert "of 1999-12-31\n\n![Years](results/abacus.svg)\n\nof 2026-01-01\n\nof 2026-01-02\n\n!" in rest

    def test_what_is_of_no_machine_ends_the_results(self, monkeypatch, tmp_path):
        monkeypatch.setattr(results, "FOLDER", tmp_path)
        readme = page()
        report = SimpleNamespace(ending=lambda: "of all")
        for _ in range(2):  # also for a page that has it
            readme = results.with_results("empty", readme, report)
            assert readme.count(results.NOTHING) == 2
            assert readme.split("\n\n")[-2:] == ["of all", f"{results.END.format(part='results')}\nrest\n"]

    @pytest.mark.parametrize("part", results.PARTS)
    def test_a_page_without_one_of_its_parts_is_named(self, monkeypatch, tmp_path, part):
        monkeypatch.setattr(results, "FOLDER", tmp_path)
        with pytest.raises(CommandError, match=f"README.md of experiment empty needs the lines '<!-- {part}: "):
            results.with_results("empty", page().replace(part, "other"), SimpleNamespace())

    def test_results_of_a_gpu_are_called_like_it(self, monkeypatch):
        monkeypatch.setattr(environment, "_free_threaded", lambda: False)
        assert results.destination("lltm-cuda", True, "NVIDIA H100 80GB HBM3").name == "nvidia-h100-80gb-hbm3.json"


OF_NO_ACCOUNT = ("README.md", "demo.py", "report.py", "results/there.json")
"""Files in the folder of an experiment that measure nothing."""


def contrast(*colours):
    """The contrast of two colours as WCAG defines it: 1 for equal colours, 21 for black on white."""

    def luminance(colour):
        parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
        linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted(map(luminance, colours))
    return (high + 0.05) / (low + 0.05)


class TestPlots:
    @pytest.mark.parametrize("path", [*experiments.FOLDER.glob("*/results/*.svg")], ids=lambda path: path.parts[-3])
    def test_every_colour_is_seen_in_dark_mode(self, path):
        style, _, drawn = path.read_text().partition("(prefers-color-scheme: dark)")[2].partition("</style>")
        rules = dict(
            re.findall(r'\[style\*="((?:fill|stroke): #\w{6})"\] { (?:fill|stroke): (#\w{6}) !important }', style)
        )
        used = set(re.findall(r"(?:fill|stroke): #\w{6}", drawn))
        assert f"fill: {plots.INK}" in used
        paper = rules[f"fill: {plots.PAPER}"]
        for one in used - {f"fill: {plots.PAPER}", f"stroke: {plots.GRID}"}:
            assert contrast(rules.get(one, one[-7:]), paper) > 3, one
        assert contrast(rules[f"fill: {plots.INK}"], paper) > 7

    def test_the_same_result_gives_the_same_bytes(self, tmp_path):
        for name in ("a", "b"):
            plots.draw_calls(tmp_path / name, "Calls", 2, [("one", summary([1.0, 2.0, 3.0]), plots.OURS)])
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    def test_the_first_of_several_parts_has_a_file_of_its_own(self, tmp_path):
        """It has the key and the width of the whole, and none of the other parts."""
        for count, parts in ((1, "one"), (2, "two")):
            figure = plots.figure(2 * count)
            all_axes = figure.subplots(count, 1, squeeze=False)[:, 0]
            for axes, title in zip(all_axes, ("Upper", "Lower"), strict=False):
                axes.plot([1, 2], label="the line")
                plots.plain(axes, title, "")
            plots.key(all_axes[0], 1)
            plots.save(figure, tmp_path / f"{parts}.svg")
        assert not plots.first_part(tmp_path / "one.svg").exists()
        whole, first = (path.read_text() for path in (tmp_path / "two.svg", plots.first_part(tmp_path / "two.svg")))
        assert all(f"<!-- {text} -->" in whole for text in ("the line", "Upper", "Lower"))
        assert all(f"<!-- {text} -->" in first for text in ("the line", "Upper"))
        assert "<!-- Lower -->" not in first
        (width, height), (of_first, part) = (
            re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text).groups() for text in (whole, first)
        )
        assert width == of_first == str(72 * plots.WIDTH)
        assert 0.4 < float(part) / float(height) < 0.6

    @pytest.mark.parametrize(
        ("title", "written"), [("one call", "One call"), ("torch's GRU", "Torch's GRU"), ("x + y", "x + y"), ("", "")]
    )
    def test_a_title_begins_with_a_capital_letter(self, title, written):
        axes = plots.figure(2).subplots()
        plots.plain(axes, title, "")
        assert axes.get_title(loc="left") == written

    def test_groups_have_their_names_above_them(self):
        axes = plots.figure(4).subplots()
        calls = [(label, summary([time]), plots.OURS) for label, time in (("ours", 2.0), ("theirs", 4.0))]
        plots.grouped_bars(axes, "Calls", {"there": calls, "back": calls[:1]})
        ticks = dict(zip((label.get_text() for label in axes.get_yticklabels()), axes.get_yticks(), strict=True))
        assert ticks["there"] < ticks["theirs"] < ticks["back"] < ticks["ours"]
        assert [bar.get_width() for bar in axes.patches] == [2.0, 4.0, 2.0]
        assert len({bar.get_y() for bar in axes.patches}) == 3


PYTHON = '''"""Says # what."""
import x  # of theirs

def f(a="# no comment", b=\'"""\', c="it\\\\"):
    """Two
    lines."""
    return g(
        a, """kept""", 1)  # "quoted
'''
CXX = """/* Says
what. */
auto url = "http://x";  // 'a
char c = '"', d = '\\''; int n = 1'000; // it's
auto raw = R"END(// kept " )END";
"""


class TestSources:
    def test_python(self):
        assert sources.code(PYTHON, ".pyx") == [
            "import x",
            """def f(a="# no comment", b='\"\"\"', c="it\\\\"):""",
            "    return g(",
            '        a, """kept""", 1)',
        ]
        lines = sources.prose(PYTHON, ".py").splitlines()
        assert [line.strip() for line in lines] == [
            '"""Says # what."""', "# of theirs", "", "", '"""Two', 'lines."""', "", '# "quoted'
        ]  # fmt: skip

    def test_cxx(self):
        assert sources.code(CXX, ".cpp") == [
            'auto url = "http://x";',
            """char c = '"', d = '\\''; int n = 1'000;""",
            'auto raw = R"END(// kept " )END";',
        ]
        assert sources.prose(CXX, ".h").split() == ["/*", "Says", "what.", "*/", "//", "'a", "//", "it's"]

    def test_a_page_is_both(self):
        assert sources.code("a // b\n", ".md") == ["a // b"]
        assert sources.prose("a // b\n", ".md") == "a // b\n"


class TestAge:
    """The age of a result of the experiment `empty`, which measures interop/fast.h."""

    @pytest.fixture
    def commit(self, monkeypatch, tmp_path):
        """Writes a file and commits it; returns the commit."""
        monkeypatch.setattr(age, "CHECKOUT", tmp_path / "clone")
        git = ["git", "-C", tmp_path / "clone", "-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "init", "--quiet", tmp_path / "clone"], check=True)

        def commit(file, line="one more\n"):
            path = tmp_path / "clone" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{path.read_text() if path.exists() else ''}{line}")
            subprocess.run([*git, "add", "."], check=True)
            subprocess.run([*git, "commit", "--quiet", "--message", file], check=True)
            done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
            return done.stdout.strip()

        return commit

    @staticmethod
    def note(commit, changed=False):
        result = {"git": {"commit": commit, "changed": changed}}
        return age.note("empty", "here", result, ("interop/fast.h",))

    @pytest.mark.parametrize("file", ["interop/fast.h", "docs/experiments/empty/measure.py"])
    def test_the_files_whose_code_changed(self, commit, file):
        first = commit(file)
        assert self.note(first) == ""
        last = commit(file)
        said = f"{age.BEGIN}since commit {first[:10]}, the code has changed in `{file.rpartition('/')[2]}`."
        assert self.note(first) == said
        assert self.note(last) == ""
        for name in ("a.h", "b.py", "c.pyx"):
            commit(f"docs/experiments/empty/{name}")
        assert self.note(first).count("`") == 2 * age.SHOWN
        assert self.note(first).endswith(" and others.")

    @pytest.mark.parametrize(
        ("file", "line"),
        [("interop/fast.h", "// Why.\n"), ("docs/experiments/empty/measure.py", '    """Give x."""  # else y\n')],
    )
    def test_comments_are_no_code(self, commit, file, line):
        first = commit(file)
        commit(file, line)
        assert self.note(first) == ""

    def test_a_file_that_was_moved(self, commit):
        first = commit("docs/experiments/empty/measure.cpp", '#include "old.h"\n' + "one more\n" * 9)
        old = age.CHECKOUT / "docs/experiments/empty/measure.cpp"
        old.write_text(old.read_text().replace("old.h", "new.h"))
        old.rename(old.with_stem("again"))
        commit("docs/experiments/empty/again.cpp", "// Why.\n")
        assert self.note(first) == ""
        commit("docs/experiments/empty/again.cpp")
        assert self.note(first).endswith(" changed in `again.cpp`.")

    def test_a_file_that_is_gone(self, commit):
        first = commit("interop/fast.h")
        (age.CHECKOUT / "interop" / "fast.h").unlink()
        commit("interop/other.h")
        assert self.note(first).endswith(" changed in `fast.h`.")

    @pytest.mark.parametrize("file", ["interop/other.h", *(f"docs/experiments/empty/{name}" for name in OF_NO_ACCOUNT)])
    def test_what_changes_no_figure(self, commit, file):
        first = commit("interop/fast.h")
        commit(file)
        assert self.note(first) == ""

    def test_sources_with_changes_were_committed_with_their_result(self, commit):
        first = commit("interop/fast.h")
        commit("interop/fast.h")
        commit("docs/experiments/empty/results/here.json")
        assert self.note(first)
        assert self.note(first, changed=True) == ""
        commit("interop/fast.h")
        assert self.note(first, changed=True).endswith(" changed in `fast.h`.")
        # A new result, of sources with changes, has yet to be committed. The last commit has its predecessor.
        (age.CHECKOUT / "docs/experiments/empty/results/here.json").write_text("new")
        assert self.note(first, changed=True) == ""

    def test_without_history_nothing_is_said(self, commit, monkeypatch, tmp_path):
        first = commit("interop/fast.h")
        commit("docs/experiments/empty/results/here.json")
        commit("interop/fast.h")
        assert self.note("0" * 40) == ""
        assert age.note("empty", "here", {"git": None}, ("interop/fast.h",)) == ""
        shallow = tmp_path / "shallow"
        command = ["git", "clone", "--quiet", "--depth=1", f"file://{age.CHECKOUT}", shallow]
        subprocess.run(command, check=True, capture_output=True)
        (tmp_path / "none").mkdir()
        for folder in (shallow, tmp_path / "none", tmp_path / "nowhere"):
            monkeypatch.setattr(age, "CHECKOUT", folder)
            assert [self.note(first), self.note(first, changed=True)] == ["", ""]

    def test_a_page_with_a_note_is_the_same_without_it(self, monkeypatch, tmp_path):
        monkeypatch.setattr(results, "FOLDER", tmp_path)
        (tmp_path / "empty" / "results").mkdir(parents=True)
        (tmp_path / "empty" / "results" / "here.json").write_text('{"date": "2026-01-01"}')
        report = SimpleNamespace(PLOT="P", MEASURED=(), answer=lambda _: "It is.", section=lambda _: "all")
        pages = []
        for note in ("", f"{age.BEGIN}since then."):
            monkeypatch.setattr(age, "note", lambda *_, note=note: note)
            pages.append(results.with_results("empty", page(), report))
        without, with_note = pages
        assert f"here{results.SUFFIX})\n\n*{age.BEGIN}since then.*\n\n<!-- end of answer -->" in with_note
        assert with_note != without == results.without_note(with_note)


class TestIndex:
    @pytest.fixture
    def folder(self, monkeypatch, tmp_path):
        folder = tmp_path / "empty"
        (folder / "results").mkdir(parents=True)
        (folder / "README.md").write_text("# Empty\n\n## Question\n\nIs it\nempty? Or not?\n")
        monkeypatch.setattr(results, "FOLDER", tmp_path)
        monkeypatch.setattr(overview, "names", lambda: ["empty"])
        report = SimpleNamespace(
            PLOT="Nothing; below: more", answer=lambda result: f"In {result['date']}.", stacks=lambda: ["others"]
        )
        monkeypatch.setattr(overview, "load", lambda *_: report)
        return folder

    def test_an_experiment_without_a_result(self, folder):
        table = overview.with_table(f"before\n\n{overview.BEGIN}\n\nold\n\n{overview.END}\n\nafter\n")
        assert table.startswith(f"before\n\n{overview.BEGIN}\n\n| question | answer | picture | ran on |\n")
        assert "| [Is it empty?](empty/README.md) | Nothing is recorded yet. |  |  |" in table
        assert table.endswith(f"\n\n{overview.END}\n\nafter\n")

    def test_the_newest_answers_and_each_stack_is_named(self, folder):
        for cores in (1, 2):
            result = {
                "date": f"200{cores}-01-01",
                "machine": {"cpu": "abacus", "cores": cores},
                "versions": {"torch": "2.13", "Python": "3.11"},
            }
            (folder / "results" / f"of-{cores}.json").write_text(json.dumps(result))
        (folder.parent / "index.md").write_text(f"{overview.BEGIN}\n{overview.END}\n")
        overview.refresh()
        line = (folder.parent / "index.md").read_text().split("\n\n")[1].splitlines()[-1]
        _, answer, picture, stacks = line.removesuffix(" |").split(" | ")
        assert answer == "In 2002-01-01."
        assert f'src="empty/results/of-2{results.SUFFIX}"' in picture
        assert picture.endswith(">](empty/README.md)")
        assert stacks == (
            "torch 2.13, CPython 3.11, abacus, 1 cores, 2001-01-01; "
            "torch 2.13, CPython 3.11, abacus, 2 cores, 2002-01-01; others"
        )
        assert 'alt="Nothing"' in picture
        (folder / "README.md").write_text(f"# Empty\n\n*{age.BEGIN}since then.*\n")
        (folder / "results" / f"of-2.first{results.SUFFIX}").touch()
        overview.refresh()
        assert f'src="empty/results/of-2.first{results.SUFFIX}"' in (folder.parent / "index.md").read_text()
        stacks = (folder.parent / "index.md").read_text().split(" | ")[-1]
        assert "cores, 2001-01-01; " in stacks
        assert f"cores, 2002-01-01, {age.OLDER}; others" in stacks


def test_a_module_for_many_cpythons_is_found(monkeypatch, tmp_path):
    monkeypatch.setattr(building, "BUILD", tmp_path)
    lib = tmp_path / "empty" / "lib"
    lib.mkdir(parents=True)
    ordinary = building.native_path("empty", "m")
    assert ordinary.name == "m" + sysconfig.get_config_var("EXT_SUFFIX")  # where it would be
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
