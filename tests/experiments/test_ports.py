"""The parts that all ports of the experiment `ports` share: comparison, times and report, with a port of two lines."""

import json
import re

import pytest
import torch

import experiments
from experiments.harness import driver, results
from interop.cli import CommandError

NAME = "ports"


@pytest.fixture
def modules():
    """The modules of the experiment."""
    return {name: experiments.load(NAME, name) for name in ("base", "measure", "originals", "report")}


@pytest.fixture
def port(modules):
    """A port in which the original and ours both square."""
    base = modules["base"]
    operation = base.Operation(
        name="square",
        dtypes=(torch.float32, torch.float64),
        sizes=("2", "3", "5"),
        inputs=lambda size, dtype: (torch.arange(float(size), dtype=dtype), 2),
        original=torch.pow,
        ours=lambda x, _: x * x,
        reference=torch.pow,
        backward=True,
    )
    return base.Port("square", "square==1.0", "math", ("*.cpp",), (operation,))


SETTINGS = {"rounds": 2, "block": 0.0, "threads": [1, 2], "sizes": 3, "dtypes": 2}


def result_of(modules, port, *, original):
    """The result that a run would give."""
    there = {"ours": (10, 1.0), **({"original": (40, 20.0)} if original else {})}
    installed = {
        way: {"lines": lines, "seconds": {"cold": cold, "edit": cold}, "bytes": 2048, "compressed": 1024}
        for way, (lines, cold) in there.items()
    }
    measure = modules["measure"]
    return {
        "settings": SETTINGS,
        "ports": {
            "square": {
                "requirement": port.requirement,
                "missing": "" if original else "it is not here",
                "against": "original" if original else "reference",
                "installed": installed,
                "agreement": measure.agreement(port, "reference", 2, 3),
            }
        },
        "measured": {"square": measure.times(port, original, SETTINGS, lambda _: None)},
    }


class TestComparison:
    def test_counts_what_agrees(self, modules, port):
        assert modules["measure"].agreement(port, "original", 2, 3) == {"results": 6, "gradients": 6}
        assert modules["measure"].agreement(port, "reference", 1, 1) == {"results": 1, "gradients": 1}

    @pytest.mark.parametrize(
        ("wrong", "what"), [(lambda x, _: x * x + 1, "result"), (lambda x, _: x.detach() * x, "gradient")]
    )
    def test_finds_what_differs(self, modules, port, monkeypatch, wrong, what):
        (operation,) = port.operations
        monkeypatch.setitem(operation.__dict__, "ours", wrong)
        with pytest.raises(CommandError, match=f"square: square for 2 of torch.float32 has another {what} than"):
            modules["measure"].agreement(port, "original", 2, 3)

    def test_times_every_case(self, modules, port):
        threads = torch.get_num_threads()
        steps = []
        found = modules["measure"].times(port, True, SETTINGS, steps.append)
        assert torch.get_num_threads() == threads
        assert len(steps) == modules["measure"].count_of_cases(port, 2, 3, 2) == 24
        for times in found["square"]["float64"]["5"]["with backward"].values():
            assert list(times) == ["ours", "original"]
            assert all(low <= middle <= high for middle, low, high in times.values())


class TestReport:
    @pytest.mark.parametrize("original", [True, False])
    def test_is_made_from_the_json_alone(self, modules, port, tmp_path, original):
        result = json.loads(json.dumps(result_of(modules, port, original=original)))
        report = modules["report"]
        results.write(tmp_path / "result.json", result, report.draw)
        assert (tmp_path / "result.svg").read_text().endswith("</svg>\n")
        summary, *_, one, two = report.tables(result)
        assert len(one.rows) == len(two.rows) == 2
        assert all(len(line) == len(one.head) == 7 for line in one.rows)
        if original:
            answer = report.answer(result)
            found = re.search(r": square ([\d.]+) \(at most ([\d.]+); 0.05 to compile\)\.$", answer)
            middle, high = map(float, found.groups())
            assert middle <= high
            assert "microseconds" not in one.title
            assert "10 / 40" in summary.rows[0]
            assert report.sentences(result) == "square: 6 results and 6 gradients are those of the original."
        else:
            assert "square, without its original, has 6 results and 6 gradients of plain torch" in report.answer(result)
            assert one.title == "square, microseconds of ours, without the original, 1 thread"
            assert "10 / -" in summary.rows[0]
            assert report.sentences(result).endswith("Without the original: it is not here.")

    def test_names_every_slower_row(self, modules, port):
        result = result_of(modules, port, original=True)
        for dtype, sizes in result["measured"]["square"]["square"].items():
            for size, directions in sizes.items():
                for times in directions.values():
                    slower = size == "3" and dtype == "float64"
                    times["1"] = {"ours": [3.0 if slower else 1.0] * 3, "original": [2.0 if slower else 1.0] * 3}
                    times["2"] = {"ours": [9.0] * 3, "original": [1.0] * 3}
        _, slower, *_ = modules["report"].tables(result)
        assert slower.title == "2 of 12 rows take longer than the original on 1 thread"
        assert slower.rows == [
            ["square", "square", "float64", "3", direction, "1.50"] for direction in ("with backward", "forward")
        ]


class TestSources:
    def test_lines_with_code_alone_count(self, modules, tmp_path):
        (tmp_path / "a.pyx").write_text("# a comment\n\ncdef int f():\n    return 1  # one\n")
        (tmp_path / "a.cpp").write_text("// a comment\n\n#include <vector>\nint f();\n")
        assert [modules["originals"]._lines(tmp_path / name) for name in ("a.pyx", "a.cpp")] == [2, 2]

    def test_each_port_says_what_it_needs(self, modules):
        for name, port in modules["base"].load_ports().items():
            assert (experiments.FOLDER / NAME / name / f"{name}_cython.pyx").exists()
            assert port.requirement.startswith(port.module)
            for operation in port.operations:
                assert len(operation.sizes) == 3
                assert operation.dtypes


@pytest.mark.slow
class TestExperiment:
    def test_a_quick_run_writes_json_and_plot(self, capsys, monkeypatch, tmp_path):
        experiments.load(NAME)
        monkeypatch.setattr(results, "BUILD", tmp_path)
        driver.run(NAME, ["--quick"])
        assert "results and" in capsys.readouterr().out
        assert (tmp_path / NAME / "result.svg").read_text().endswith("</svg>\n")
        (result,) = results.read(tmp_path / NAME).values()
        assert set(result["measured"]) == set(result["ports"]) == set(experiments.load(NAME, "base").load_ports())
