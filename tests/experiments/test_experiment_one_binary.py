"""The experiment one-binary: all ways agree, stable modules suit many releases, and the page reports the results."""

import json
import subprocess
from types import SimpleNamespace

import pytest
import torch
from elftools.elf.elffile import ELFFile

import experiments
from experiments.harness import building, results
from interop.cli import CommandError

NAME = "one-binary"


@pytest.fixture(scope="module")
def one_binary():
    names = ("measure", "report", "run", "training", "ways")
    return SimpleNamespace(**{name: experiments.load(NAME, name) for name in names})


@pytest.fixture(scope="module")
def compiled(one_binary):
    building.build(NAME)
    return one_binary


@pytest.mark.slow
class TestKernels:
    def test_all_ways_agree(self, compiled):
        found = compiled.ways.check()
        assert found["largest difference"] < 1e-5
        assert set(compiled.ways.kernels()) == set(compiled.ways.available())

    @pytest.mark.parametrize("name", experiments.load(NAME, "ways").KERNELS)
    def test_the_check_finds_each_wrong_kernel(self, compiled, monkeypatch, name):
        ways = compiled.ways
        real = ways.kernels()
        for way in (ways.MANY, ways.OPERATORS):
            right = real[way][name]

            def wrong(*given, right=right):
                result = right(*given)
                return (*result[:-1], result[-1] + 1e-3) if isinstance(result, tuple) else result + 1

            changed = real | {way: real[way] | {name: wrong}}
            monkeypatch.setattr(ways, "kernels", lambda changed=changed: changed)
            with pytest.raises(CommandError, match=f"^{name}, {way}: the result is not that of PyTorch"):
                ways.check()

    @pytest.mark.parametrize(
        ("name", "arguments", "message"),
        [
            ("segment_sum", [torch.ones(3, 2), torch.tensor([0, 4])], "offsets must rise"),
            ("segment_sum", [torch.ones(3, 2), torch.tensor([0, 4, 3])], "offsets must rise"),
            ("segment_sum", [torch.ones(3, 2), torch.tensor([-1, 3])], "offsets must rise"),
            ("segment_sum", [torch.ones(3, 2), torch.tensor([], dtype=torch.int64)], "offsets must rise"),
            ("segment_sum", [torch.ones(3), torch.tensor([0, 3])], "2 dimensions"),
            ("segment_sum", [torch.ones(3, 2).double(), torch.tensor([0, 3])], "Float"),
            ("forward", [torch.ones(2, 5), torch.ones(2, 2)], "gates must have"),
            ("backward", [torch.ones(2, 2), torch.ones(1), torch.ones(2, 6), torch.ones(2, 2)], "sizes of new_c"),
        ],
    )
    def test_what_would_read_elsewhere_is_refused(self, compiled, name, arguments, message):
        for functions in compiled.ways.kernels().values():
            with pytest.raises((ValueError, RuntimeError), match=message):
                functions[name](*arguments)

    def test_the_limited_api_and_no_library_of_torch(self, compiled):
        """Stable modules keep to both, although modules of the same source with the full API are built with them."""
        ways = compiled.ways
        for way, paths in ways.files().items():
            assert len(paths) == (2 if way == ways.ONE else 1)
            with paths[0].open("rb") as file:
                needed = [tag.needed for tag in ELFFile(file).get_section_by_name(".dynamic").iter_tags("DT_NEEDED")]
            linked = any(name.startswith(("libtorch", "libc10")) for name in needed)
            if way in ways.CYTHON and way != ways.ONE:
                assert not linked, way
            if way in ways.FLOORS:
                assert paths[0].name.endswith(".abi3.so")
                abi3audit = [building.sys.executable, "-m", "abi3audit", "--strict", "--assume-minimum-abi3"]
                subprocess.run([*abi3audit, f"3.{ways.FLOORS[way].removeprefix('cp3')}", paths[0]], check=True)

    def test_the_losses_are_the_same(self, compiled):
        settings = compiled.run.EXPERIMENT.settings | {"steps": 3, "length": 4}
        losses = compiled.training.train(settings, lambda _: None)
        ways = compiled.ways
        assert set(losses) == {compiled.training.PYTHON, *ways.available()}
        assert losses[ways.MANY] == losses[ways.ONE]

    def test_the_training_finds_a_wrong_gradient(self, compiled, monkeypatch):
        ways, settings = compiled.ways, compiled.run.EXPERIMENT.settings | {"steps": 5, "length": 4}
        real = ways.kernels()

        def wrong(*given):
            d_gates, d_c = real[ways.MANY]["backward"](*given)
            return -d_gates, d_c

        changed = real | {ways.MANY: real[ways.MANY] | {"backward": wrong}}
        monkeypatch.setattr(ways, "kernels", lambda: changed)
        with pytest.raises(CommandError, match=f"^{ways.MANY}: the loss after training is "):
            compiled.training.train(settings, lambda _: None)


class TestReport:
    @pytest.fixture
    def result(self, one_binary):
        """A result as under CPython 3.12. Each way takes 10 nanoseconds or seconds more than its index."""
        places = {way: 10.0 + index for index, way in enumerate(one_binary.ways.WAYS)}
        recorded = next(iter(results.read_recorded(NAME).values()))
        times = {way: {"median": place, "quartiles": [place, place]} for way, place in places.items()}
        compiling = {way: {"translate": 1.0, "g++": place} for way, place in places.items()}
        return recorded | {
            "times": dict.fromkeys(one_binary.ways.KERNELS, times),
            "instructions": {},
            "files": {way: {"files": 1, "bytes": 2048, "compressed": 1024} for way in places},
            "compiling": {"small": compiling},
            "training": {way: [4.5, 4.25] for way in (one_binary.training.PYTHON, *places)},
        }

    def test_each_bar_is_held_against_its_limit(self, one_binary, result):
        rows = {
            name: (most, measured, holds) for name, most, measured, holds in one_binary.report.tables(result)[0].rows
        }
        assert rows["numel, floor cp312, over one release"] == ("1.40", "1.30", "yes")
        assert rows["numel, floor cp311, over pybind11"] == ("1.00", "0.86", "yes")
        assert rows["at.linear, floor cp312, over one release"] == ("1.45", "1.30", "yes")
        assert rows["g++ of a small module, floor cp311, over one release"] == ("0.50", "1.20", "no")

    def test_what_a_cpython_cannot_build_is_not_measured(self, one_binary, result):
        cp312 = tuple(one_binary.ways.FLOORS)[1]
        for found in (*result["times"].values(), *result["compiling"].values()):
            found.pop(cp312, None)
        tables = one_binary.report.tables(result)
        rows = {row[0]: row[1:] for row in tables[0].rows}
        assert rows["numel, floor cp312, over one release"] == ["1.40", "-", "not measured"]
        assert not any(cp312 in table.head for table in tables)

    def test_a_quick_run_leaves_out_what_takes_long(self, one_binary, result):
        rows = {row[0]: row[1:] for row in one_binary.report.tables(result | {"compiling": {}})[0].rows}
        assert rows["g++ of a small module, floor cp311, over one release"] == ["0.50", "-", "not measured"]

    def test_the_sentences_tell_one_loss_from_another(self, one_binary, result):
        said = one_binary.report.sentences(result)
        assert "falls from 4.5000 to 4.2500 with the module for one release, and to 4.2500" in said
        assert "with that for many: the same number. " in said
        result["training"] = result["training"] | {one_binary.report.one_file(result): [4.5, 4.2501]}
        said = one_binary.report.sentences(result)
        assert "4.2501 with that for many: not the same number. " in said
        assert "within 1.0e-04." in said

    def test_it_draws_all_ways(self, one_binary, result, tmp_path):
        one_binary.report.draw(result, tmp_path / "a.svg")
        assert (tmp_path / "a.svg").stat().st_size > 10000

    def test_the_stacks_are_those_of_the_file(self, one_binary, monkeypatch, tmp_path):
        """The page shows the stacks of the file: each line of tests/stable/checks.py, with a date and a commit."""
        monkeypatch.setattr(one_binary.report, "STACKS", tmp_path / "stacks.jsonl")
        assert one_binary.report.ending() == ""
        line = {"checks": 5, "borrows": True, "calls": 1_000_000, "date": "2026-11-23", "commit": "0123456789abcdef"}
        versions = [("2.13.0+cpu", "3.11.7"), ("2.9.1", "3.12.1"), ("2.13.0+cpu", "3.9.18"), ("2.13.0+cpu", "3.11.7")]
        lines = [json.dumps(line | {"torch": torch, "python": python}) for torch, python in versions]
        one_binary.report.STACKS.write_text("\n".join(lines) + "\n")
        said = one_binary.report.ending()
        assert [row.split(" | ")[:2] for row in said.splitlines() if row.startswith("| 2")] == [
            ["| 2.9.1", "3.12.1"],
            ["| 2.13.0+cpu", "3.9.18"],
            ["| 2.13.0+cpu", "3.11.7"],
            ["| 2.13.0+cpu", "3.11.7"],
        ]
        assert "| 2.9.1 | 3.12.1 | 5 | 1,000,000 | borrowed | 2026-11-23, 0123456789 |" in said
        assert "These are 3 stacks." in said
