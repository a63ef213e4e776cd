"""The experiments: their command line, the agreement of their ways, their reports and their recorded results."""

import itertools
import os
import platform
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import matplotlib.colors
import matplotlib.text
import pytest
import torch

import experiments
from experiments.harness import building, calls, driver, environment, overview, plots, results
from interop import __main__ as command_line
from interop.cli import CommandError
from interop.testing import check_dynamic_shapes

LLTM = experiments.FOLDER / "lltm"
BATCH, FEATURES, STATE = 3, 4, 5


@pytest.fixture
def interop(capsys):
    """Runs the command line in this process; returns the exit status, standard output and standard error."""

    def run(*arguments):
        status = command_line.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture(scope="session")
def lltm():
    """The modules of the experiment lltm, with its cells compiled."""
    building.build("lltm")
    return SimpleNamespace(
        **{
            name: experiments.load("lltm", name)
            for name in ("agreement", "cell_native", "data", "model", "report", "run", "timing", "ways")
        }
    )


@pytest.fixture
def without_torch_compile(lltm, monkeypatch):
    """Replaces the cell of torch.compile, which compiles for each size and dtype, with that in Python."""
    classes = lltm.ways.classes()
    monkeypatch.setattr(lltm.ways, "classes", lambda *_: classes | {"torch.compile": classes["Python"]})


@pytest.fixture(scope="session", params=["cell_cpp", "cell_cython"])
def kernels(request, lltm):
    """A compiled module with forward and backward."""
    return building.native("lltm", request.param)


@pytest.fixture
def arguments(lltm):
    """x, h, c, weight and bias, with gradients."""
    torch.manual_seed(1)
    cell = lltm.ways.same_cells(FEATURES, STATE, dtype=torch.float64)["Python"]
    return [*lltm.agreement.inputs(BATCH, FEATURES, STATE, torch.float64), cell.weight, cell.bias]


class TestCommandLine:
    def test_lists_the_experiments_in_a_process_of_its_own(self):
        command = [sys.executable, "-m", "interop", "experiments", "--list"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "lltm" in done.stdout
        assert done.stdout.count("\n") == len(experiments.names())

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["nonsense"], "there is no command 'nonsense'; the commands are: "),
            (["experiments", "nonsense"], "there is no experiment 'nonsense'; there are: "),
            (["experiments", "nonsense"], "lltm"),
            (["experiments", "../lltm"], "there is no experiment '../lltm'"),
            (["experiments", "--nonsense"], "--nonsense"),
            (["experiments", "lltm", "--json"], "--json is for --list"),
            (["experiments", "--all", "--json"], "--json is for --list"),
            (["experiments", "lltm", "--nonsense"], "--nonsense"),
            (["experiments", "lltm", "--steps", "0"], "must be a whole number above 0, got '0'"),
            (["experiments", "lltm", "--steps", "-3"], "must be a whole number above 0, got '-3'"),
            (["experiments", "lltm", "--", "--steps", "many"], "must be a whole number above 0, got 'many'"),
            (["experiments", "lltm", "--text"], "--text"),
            (["experiments", "lltm", "--text", "no/such/file"], "cannot read no/such/file: No such file"),
            (["experiments", "lltm", "--text", os.path.dirname(__file__)], "Is a directory"),
            (["experiments", "lltm", "--text", ""], "cannot read"),
            (["experiments", "lltm", "--text", "a\0b"], "null"),
            (["experiments", "lltm", "--quick", "--record"], "leave --quick out"),
        ],
    )
    def test_wrong_arguments_are_one_line_and_status_2(self, interop, monkeypatch, arguments, message):
        monkeypatch.setattr(building, "is_built", lambda *_: pytest.fail("it went on to compile"))
        status, out, error = interop(*arguments)
        assert (status, out) == (2, "")
        assert error.startswith("error: ")
        assert error.count("\n") == 1
        assert message in error

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"too short", "has 9 characters; a text needs at least 2000"),
            (b"", "has 0 characters"),
            (b"long enough " * 1000 + b"\xff", "not UTF-8 text: invalid start byte at byte"),
        ],
    )
    def test_a_file_that_is_no_text_to_learn(self, interop, tmp_path, content, message):
        file = tmp_path / "text.txt"
        file.write_bytes(content)
        status, _, error = interop("experiments", "lltm", "--text", file)
        assert status == 2
        assert error.count("\n") == 1
        assert message in error

    def test_an_installed_package_says_where_the_experiments_are(self, interop, monkeypatch, tmp_path):
        monkeypatch.setattr("interop.experiments.DOCS", tmp_path / "docs")
        status, _, error = interop("experiments", "lltm")
        assert status == 1
        assert error.count("\n") == 1
        assert "checkout" in error
        assert "make .venv/ready" in error

    def test_a_missing_package_is_named(self, interop, monkeypatch):
        monkeypatch.setitem(sys.modules, "rich.console", None)
        for name in ("display", "driver"):
            monkeypatch.delitem(sys.modules, f"experiments.harness.{name}", raising=False)
            monkeypatch.delattr(f"experiments.harness.{name}", raising=False)
        status, _, error = interop("experiments", "lltm")
        assert status == 1
        assert error.count("\n") == 1
        assert "need rich" in error
        assert "pip install matplotlib psutil pybind11 rich" in error

    def test_help_of_an_experiment_shows_its_own_arguments(self, capsys):
        with pytest.raises(SystemExit) as exit_:
            command_line.main(["experiments", "lltm", "--help"])
        assert exit_.value.code == 0
        assert "--text FILE" in capsys.readouterr().out

    @pytest.mark.usefixtures("without_torch_compile")
    def test_a_whole_run_writes_json_and_plot_and_nothing_beside_the_sources(
        self, interop, lltm, monkeypatch, tmp_path
    ):
        monkeypatch.setattr(results, "BUILD", tmp_path)
        before = sorted(path for path in LLTM.rglob("*") if path.suffix != ".pyc")
        text = tmp_path / "a$b$.txt"
        text.write_text("the text of a file, again and again. " * 100, encoding="utf-8")
        status, out, error = interop("experiments", "--quick", "lltm", "--steps", 3, "--text", text)
        assert (status, error) == (0, "")
        assert "training 3/3" in out
        assert sorted(path for path in LLTM.rglob("*") if path.suffix != ".pyc") == before
        assert (tmp_path / "lltm" / "result.svg").read_text().endswith("</svg>\n")
        (result,) = results.read(tmp_path / "lltm").values()
        assert result["versions"]["torch"] == torch.__version__
        assert result["training"]["text"] == "a$b$.txt"
        assert {way: len(losses) for way, losses in result["training"]["losses"].items()} == dict.fromkeys(
            lltm.ways.WAYS, 3
        )
        (times,) = result["times"].values()
        assert list(times) == ["1 thread", "2 threads"]
        for what, count in itertools.product(("forward", "backward", "both"), times):
            assert all(times[count][what][way]["median"] > 0 for way in (*lltm.ways.WAYS, "products"))
        assert list(result["times"]) == list(result["agreement"]["largest"]) == ["16, 32, 128"]


@pytest.mark.long
class TestBuilding:
    def test_nothing_is_compiled_twice(self, lltm, monkeypatch):
        monkeypatch.setattr(building.subprocess, "run", lambda *_, **__: pytest.fail("it compiled again"))
        building.build("lltm")

    def test_a_build_leaves_nothing_beside_the_sources(self, lltm):
        assert not (LLTM / "build").exists()
        assert {path.name for path in LLTM.glob("cell_cython*")} == {"cell_cython.pyx"}
        assert not [path for path in LLTM.iterdir() if path.suffix in {".so", ".o", ".egg-info"}]

    def test_a_changed_source_is_compiled_again(self, lltm, monkeypatch, tmp_path):
        shutil.copytree(LLTM, tmp_path / "lltm")
        monkeypatch.setattr(building, "FOLDER", tmp_path)
        assert building.is_built("lltm")
        with (tmp_path / "lltm" / "cell_cython.pyx").open("a") as file:
            file.write("\n")
        assert not building.is_built("lltm")

    @pytest.mark.parametrize(
        ("file", "built"),
        [("measure.py", False), ("other.py", False), ("setup.py", False), ("report.py", True), ("run.py", True)],
    )
    def test_a_change_where_setup_py_may_load_from_is_compiled_again(self, monkeypatch, tmp_path, file, built):
        """Such as the flags in measure.py, which setup.py passes to the compiler."""
        monkeypatch.setattr(building, "FOLDER", tmp_path)
        monkeypatch.setattr(building, "BUILD", tmp_path / "build")
        folder = tmp_path / "empty"
        folder.mkdir()
        (folder / "setup.py").write_text("from setuptools import setup\nsetup(name='empty', py_modules=[])\n")
        for name in ("measure.py", "other.py", "report.py", "run.py"):
            (folder / name).write_text("FLAGS = ['-O2']\n")
        (tmp_path / "build" / "empty" / "lib").mkdir(parents=True)
        building.build("empty")
        assert building.is_built("empty")
        with (folder / file).open("a") as opened:
            opened.write("FLAGS = ['-O3']\n")
        assert building.is_built("empty") is built

    @pytest.mark.parametrize("variable", ["CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"])
    def test_other_flags_in_the_environment_are_compiled_again(self, monkeypatch, variable):
        before = building._fingerprint(LLTM)
        monkeypatch.setenv(variable, os.environ.get(variable, "") + " -DOTHER")
        assert building._fingerprint(LLTM) != before

    def test_what_python_writes_beside_the_helper_does_not_count(self, monkeypatch, tmp_path):
        """Python writes it on the first import, unless PYTHONDONTWRITEBYTECODE is set."""
        helper = tmp_path / "interop" / "build"
        helper.mkdir(parents=True)
        (helper / "flags.py").write_text("FLAGS = 1\n")
        monkeypatch.setattr(building, "CHECKOUT", tmp_path)
        before = building._fingerprint(LLTM)
        (helper / "__pycache__").mkdir()
        (helper / "__pycache__" / "flags.cpython-311.pyc").write_bytes(b"compiled")
        assert building._fingerprint(LLTM) == before
        (helper / "flags.py").write_text("FLAGS = 2\n")
        assert building._fingerprint(LLTM) != before

    def test_a_failure_names_the_error_and_the_log(self, monkeypatch, tmp_path):
        monkeypatch.setattr(building, "FOLDER", tmp_path)
        monkeypatch.setattr(building, "BUILD", tmp_path / "build")
        (tmp_path / "broken").mkdir()
        lines = ["x", "performance hint: y.pyx:1:1: Declare it noexcept", "y.cpp:1:1: error: no such thing"]
        (tmp_path / "broken" / "setup.py").write_text(f"print(*{lines}, sep='\\n')\nexit(1)\n")
        with pytest.raises(CommandError, match=r"y\.cpp:1:1: error: no such thing .*build\.log"):
            building.build("broken")
        assert "x\n" in (tmp_path / "build" / "broken" / "build.log").read_text()
        assert not building.is_built("broken")


class TestCells:
    def test_agree_forward_and_backward_and_with_numerical_differences(self, lltm):
        torch.manual_seed(0)
        lltm.agreement.check(BATCH, FEATURES, STATE)
        lltm.agreement.check_gradients()

    @pytest.mark.usefixtures("without_torch_compile")
    def test_agree_at_each_size_that_is_timed(self, lltm):
        sizes = lltm.run.EXPERIMENT.settings["sizes"]
        assert min(batch for batch, *_ in sizes) <= 32 < max(batch for batch, *_ in sizes)
        torch.manual_seed(0)
        for size in sizes:
            for differences in lltm.agreement.check(*size).values():
                assert set(differences) == set(lltm.ways.WAYS) - {"Python"}

    @pytest.mark.usefixtures("without_torch_compile")
    def test_a_way_that_is_wrong_at_one_size_is_not_timed(self, lltm, monkeypatch):
        """At the size at which the fused cell takes another path."""
        classes = lltm.ways.classes()
        fused = classes["Cython fused"]

        class Wrong(fused):
            def forward(self, x, h, c):
                new_h, new_c = super().forward(x, h, c)
                return new_h + 1e-3 * (len(x) > 32), new_c

        monkeypatch.setattr(lltm.ways, "classes", lambda *_: classes | {"Cython fused": Wrong})
        monkeypatch.setattr(lltm.model, "train", lambda *_: pytest.fail("it trains"))
        monkeypatch.setattr(lltm.timing, "measure", lambda *_: pytest.fail("it times"))
        with pytest.raises(CommandError, match=r"Cython fused disagrees with Python at batch 64, .*: h' by 1"):
            lltm.run.run(lltm.run.EXPERIMENT.settings, SimpleNamespace(text=None))

    @pytest.mark.parametrize("wrong", range(7))
    def test_the_check_finds_each_wrong_result(self, lltm, monkeypatch, wrong):
        right = building.native("lltm", "cell_cython")

        def off(values, index):
            return [v + 1e-3 if i == index else v for i, v in enumerate(values)]

        kernels = SimpleNamespace(
            forward=lambda *a: off(right.forward(*a), wrong if wrong < 2 else None),
            backward=lambda *a: off(right.backward(*a), wrong - 2),
        )
        classes = lltm.ways.classes() | {"Cython": lltm.cell_native.native_cell(kernels)}
        monkeypatch.setattr(lltm.ways, "classes", lambda *_: classes)
        with pytest.raises(CommandError, match="Cython disagrees with Python at .*: " + lltm.agreement.NAMES[wrong]):
            lltm.agreement.check(BATCH, FEATURES, STATE)

    def test_cpp_and_cython_are_equal_to_the_bit(self, lltm):
        torch.manual_seed(0)
        cells = lltm.ways.same_cells(32, 128)
        given = lltm.agreement.inputs(16, 32, 128)
        pairs = zip(*(lltm.agreement.evaluate(cells[way], given) for way in ("C++", "Cython")), strict=True)
        assert [torch.equal(a, b) for a, b in pairs] == [True] * 7

    def test_only_the_gradients_that_are_needed(self, lltm, kernels, arguments):
        new_h, new_c, *saved = kernels.forward(*arguments)
        gradients = [torch.randn_like(new_h), torch.randn_like(new_c)]
        every = kernels.backward(*gradients, *saved, arguments[3], (True,) * 5)
        for needs in itertools.product((False, True), repeat=5):
            x, h, c, weight, bias = kernels.backward(*gradients, *saved, arguments[3], needs)
            assert (weight is not None, bias is not None) == needs[3:]
            assert (x is not None, h is not None) == (needs[0] or needs[1],) * 2  # parts of one product
            for got, expected in zip((x, h, c, weight, bias), every, strict=True):
                assert got is None or torch.equal(got, expected)

    def test_autograd_reaches_each_leaf_alone(self, lltm, arguments):
        cells = lltm.ways.same_cells(FEATURES, STATE, dtype=torch.float64)
        for index, leaf in enumerate(arguments[:3]):
            gradients = []
            for cell in cells.values():
                given = [a if i == index else a.detach() for i, a in enumerate(arguments[:3])]
                cell.requires_grad_(False)
                # h' alone: no gradient comes in for c'.
                gradients += torch.autograd.grad(cell(*given)[0].square().sum(), leaf)
            torch.testing.assert_close(gradients[1:], gradients[:1] * (len(cells) - 1))

    def test_inputs_stay_as_they_are(self, kernels, arguments):
        before = [argument.detach().clone() for argument in arguments]
        _, _, *saved = kernels.forward(*arguments)
        kept = [tensor.clone() for tensor in saved]
        given = [torch.ones(BATCH, STATE, dtype=torch.float64), torch.ones(BATCH, STATE, dtype=torch.float64)]
        kernels.backward(*given, *saved, arguments[3], (True,) * 5)
        for now, then in zip([*arguments, *saved, *given], [*before, *kept, *map(torch.ones_like, given)], strict=True):
            assert torch.equal(now, then)

    def test_a_second_derivative_is_refused(self, lltm, arguments):
        for way in ("C++", "Cython"):
            cell = lltm.ways.same_cells(FEATURES, STATE, dtype=torch.float64)[way]
            output = cell(*arguments[:3])[0].square().sum()
            (gradient,) = torch.autograd.grad(output, arguments[0], create_graph=True)
            with pytest.raises(RuntimeError, match="once_differentiable"):
                gradient.sum().backward()

    @pytest.mark.parametrize("index", range(5))
    @pytest.mark.parametrize("wrong", [None, [1.0], 3])
    def test_what_is_no_tensor_is_a_type_error(self, kernels, arguments, index, wrong):
        arguments[index] = wrong
        with pytest.raises(TypeError):
            kernels.forward(*arguments)

    @pytest.mark.parametrize(
        "shapes",
        [
            {0: (BATCH, FEATURES + 1)},
            {0: (BATCH + 1, FEATURES)},
            {0: (FEATURES,)},
            {1: (BATCH, STATE + 1)},
            {1: (BATCH + 1, STATE)},
            {0: (BATCH, FEATURES - 1), 1: (BATCH, STATE + 1)},  # their total width is correct
            {0: (BATCH, FEATURES - 1), 1: (BATCH, STATE + 1), 2: (BATCH, STATE + 1)},
            {2: (1, STATE)},  # could be broadcast
            {2: (2, BATCH, STATE)},
            {0: (BATCH, 2, FEATURES), 1: (BATCH, 2, STATE), 2: (BATCH, 2, STATE)},
            {1: (), 2: ()},
            {3: (3 * STATE + 1, FEATURES + STATE)},
            {3: (3 * STATE, FEATURES + STATE + 1)},
            {3: (3 * STATE,)},
            {4: (3 * STATE + 1,)},
        ],
        ids=str,
    )
    def test_wrong_shapes_are_runtime_errors(self, kernels, arguments, shapes):
        for index, shape in shapes.items():
            arguments[index] = torch.zeros(shape, dtype=torch.float64)
        with pytest.raises(RuntimeError):
            kernels.forward(*arguments)

    def test_mixed_dtypes_are_runtime_errors(self, kernels, arguments):
        arguments[3] = arguments[3].detach().float()
        with pytest.raises(RuntimeError, match="dtype"):
            kernels.forward(*arguments)


@pytest.mark.slow
class TestCustomOps:
    @pytest.mark.parametrize(
        ("what", "wrong", "message"),
        [
            ("OPERATOR", torch.expm1, "the result is"),
            ("RECORDED", lambda x: torch.exp(x.detach()), "the result has no gradient"),
            ("FUNCTION_BOTH", lambda x: torch.exp(x.detach()) + x - x.detach(), "the gradient is"),
        ],
    )
    def test_the_check_finds_each_wrong_way(self, monkeypatch, what, wrong, message):
        building.build("custom-ops")
        ways = experiments.load("custom-ops", "ways")
        key = getattr(ways, what), "Cython"
        calls = ways.calls() | {key: wrong}
        monkeypatch.setattr(ways, "calls", lambda: calls)
        with pytest.raises(CommandError, match=f"{key[0]}, Cython: {message}"):
            ways.check()

    @pytest.mark.parametrize("name", ["exp", "exp_with_gradient", "exp_with_rule_in_python"])
    def test_one_compilation_for_all_sizes(self, name):
        building.build("custom-ops")
        building.native("custom-ops", "ops_cython")
        check_dynamic_shapes(
            getattr(torch.ops.ops_cython, name), lambda n: (torch.randn(n, requires_grad=name == "exp_with_gradient"),)
        )


@pytest.mark.extended
class TestMemoryviewTranspose:
    def test_the_check_finds_a_wrong_way(self, monkeypatch):
        building.build("memoryview-transpose")
        measure = experiments.load("memoryview-transpose", "measure")
        monkeypatch.setitem(measure.METHODS, (measure.ASSIGN, "v.base.transpose"), "nothing")
        with pytest.raises(CommandError, match=r"v\.base\.transpose: the member is not the array with other axes"):
            measure.check()


@pytest.mark.slow
class TestUfunc:
    @pytest.mark.parametrize("how", ["", "_into"])
    def test_the_check_finds_each_wrong_way(self, monkeypatch, how):
        building.build("ufunc")
        measure = experiments.load("ufunc", "measure")

        def uncompiled(what, into=how):
            return {way: function for way, function in real[into](what).items() if way != "torch.compile"}

        real = {into: getattr(measure, f"ways{into}") for into in ("", "_into")}
        for into in real:
            monkeypatch.setattr(measure, f"ways{into}", lambda what, into=into: uncompiled(what, into))
        measure.check()
        wrong = (lambda x, y, out=None: x) if not how else (lambda x, y, out: None)
        monkeypatch.setattr(measure, f"ways{how}", lambda what: uncompiled(what) | {"loop by hand": wrong})
        where = " into an existing result" if how else ""
        with pytest.raises(CommandError, match=rf"loop by hand{where} disagrees with torch on x \+ y"):
            measure.check()

    @pytest.mark.skipif(
        platform.machine() != "x86_64" or not shutil.which("objdump"), reason="looks at x86-64's instructions"
    )
    def test_the_loops_by_hand_are_vectorised(self):
        """Otherwise the comparison would be with the code of g++ for any loop at -O2."""
        building.build("ufunc")
        # The half that uses torch is in a library of its own, beside the module.
        (library,) = building.native_path("ufunc", "").parent.glob("_ufunc_cython_torch_*")
        code = subprocess.run(
            ["objdump", "-d", "--no-show-raw-insn", library], capture_output=True, text=True, check=True
        ).stdout
        for name, instruction in (("_add_part", "addps"), ("_fused_part", "divps")):
            (function,) = re.findall(rf"^[0-9a-f]+ <[^>]*{name}[^>]*>:\n(.*?)(?=^$|\Z)", code, re.MULTILINE | re.DOTALL)
            assert instruction in function

    def test_a_loop_by_hand_writes_into_no_other_size(self):
        building.build("ufunc")
        module = building.native("ufunc", "ufunc_cython")
        x, out = torch.ones(8), torch.zeros(4)
        with pytest.raises(ValueError, match="x, y and out must be contiguous and of one size"):
            module.add_by_hand_into(x, x, out)
        assert torch.equal(out, torch.zeros(4))

    def test_bandwidth_is_that_into_an_existing_result(self):
        """A call that allocates its result also measures the system's page faults."""
        report, measure = (experiments.load("ufunc", name) for name in ("report", "measure"))
        result, *_ = results.read_recorded("ufunc").values()
        times = {"elementwise": 4000, "torch": 3000, "torch.compile": 5000, "@cython.ufunc": 6000, "loop by hand": 1}
        times = {way: {"median": float(time)} for way, time in times.items()}
        result |= {
            "into": dict.fromkeys(measure.FUNCTIONS, times),
            "faults": dict.fromkeys(measure.FUNCTIONS, dict.fromkeys(measure.WAYS, 9766)),
        }
        section = results.section(report, result)
        assert "| 1k | 100k | 10M | 10M, into an existing result | 10M, page faults |" in section
        assert "| 4000.0 | 9766 |" in section
        assert "moves 30.0 GB/s, 0.75 times what torch.add moves" in section

    def test_clang_is_compared_where_it_is(self):
        report, measure = (experiments.load("ufunc", name) for name in ("report", "measure"))
        result, *_ = results.read_recorded("ufunc").values()
        times = {f"{way}, {by}": {"median": n} for way in measure.COMPILED for by, n in (("default", 4), ("clang", 3))}
        clang = {"version": "clang 19", "times": dict.fromkeys(measure.FUNCTIONS, dict.fromkeys(measure.SIZES, times))}
        section = results.section(report, result | {"clang": clang})
        assert "| clang 19, times as long as g++" in section
        assert section.count("| 0.75 | 0.75 | 0.75 |") == 4
        assert "clang" not in results.section(report, result | {"clang": {}})


@pytest.fixture
def one_thread():
    """One thread, because small steps on several threads wait for one another if other programs run as well."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class TestTraining:
    @pytest.mark.usefixtures("one_thread", "without_torch_compile")
    def test_the_losses_fall_alike(self, lltm):
        text = lltm.data.Text("alphabet", "abcdefgh" * 300)
        torch.manual_seed(0)
        models = {way: lltm.model.CharacterModel(cell, 8, 8, 16) for way, cell in lltm.ways.classes().items()}
        for model in models.values():
            model.load_state_dict(models["Python"].state_dict())
        details = []
        losses = lltm.model.train(models, text.batches(4, 8, 60), details.append, rate=1e-2)
        assert len(details) == 60
        for values in losses.values():
            assert values[-1] < values[0] / 4
            assert values == pytest.approx(losses["Python"], rel=1e-2)

    def test_there_is_always_a_text(self, lltm, monkeypatch, tmp_path):
        assert len(lltm.data.default().indices) >= lltm.data.MINIMUM
        monkeypatch.setattr(lltm.data.os, "__file__", str(tmp_path / "os.py"))
        assert lltm.data.default().name == "argparse.py"

    def test_batches_are_stretches_of_the_text(self, lltm):
        characters = "".join(chr(0x4E00 + i) for i in range(lltm.data.MINIMUM))  # each occurs once
        text = lltm.data.Text("all different", characters)
        for batch in text.batches(5, 7, 3):
            assert batch.shape == (8, 5)
            assert torch.equal(batch[1:], batch[:-1] + 1)


class TestLltmTimes:
    """Times for several sizes, on one thread and on two."""

    @pytest.fixture
    def times(self, lltm):
        """All ways take as long as Python, except for the fused cell."""

        def of_case(python, fused):
            ways = dict.fromkeys((*lltm.ways.WAYS, "products"), python) | {"Cython fused": fused}
            spread = {way: {"median": time, "quartiles": [time, time]} for way, time in ways.items()}
            return dict.fromkeys(("forward", "backward", "both"), spread)

        return {
            "1, 2, 3": {"1 thread": of_case(10.0, 5.0), "2 threads": of_case(20.0, 5.0)},
            "40, 5, 6": {"1 thread": of_case(10.0, 10.0), "2 threads": of_case(10.0, 30.0)},
        }

    def test_each_number_of_threads_is_set(self, lltm, monkeypatch):
        seen = []

        class Observed(lltm.ways.classes()["Python"]):
            def forward(self, x, h, c):
                seen.append(torch.get_num_threads())
                return super().forward(x, h, c)

        monkeypatch.setattr(lltm.ways, "classes", lambda *_: dict.fromkeys(lltm.ways.WAYS, Observed))
        before = torch.get_num_threads()
        for threads in (1, 2):
            seen.clear()
            lltm.timing.measure(BATCH, FEATURES, STATE, threads, 1, 0.0, lambda _: None)
            assert set(seen) == {threads}
        assert torch.get_num_threads() == before

    def test_the_tables_have_every_case(self, lltm, times):
        first, every = lltm.report.tables({"times": times})
        assert first.title == "microseconds, median, at batch 1, features 2, state 3 on 1 thread"
        assert [line[0] for line in first.rows] == ["forward", "backward", "both"]
        assert [line[:4] + line[-2:] for line in every.rows[2::3]] == [
            ["1, 2, 3", "1", "both", "10.0", "0.50", "1.00"],
            ["1, 2, 3", "2", "both", "20.0", "0.25", "1.00"],
            ["40, 5, 6", "1", "both", "10.0", "1.00", "1.00"],
            ["40, 5, 6", "2", "both", "10.0", "3.00", "1.00"],
        ]
        for table in (first, every):
            assert {len(line) for line in table.rows} == {len(table.head)}

    def test_the_sentences_say_where(self, lltm, times):
        said = lltm.report.comparison({"times": times})
        assert "fused cell takes 0.25 (1, 2, 3 on 2 threads) to 3.00 (40, 5, 6 on 2 threads) times" in said


class TestLltmOnAGpu:
    """The experiment lltm-cuda, as far as it runs without a GPU."""

    @pytest.fixture
    def lltm_cuda(self, toolkit, monkeypatch):
        modules = {
            name: experiments.load("lltm-cuda", name) for name in ("agreement", "bandwidth", "report", "timing", "ways")
        }

        def without_the_compiler(*sizes, **options):
            cells = modules["ways"].same_cells(*sizes, **options)
            return cells | {"torch.compile": cells["C++"]}

        monkeypatch.setattr(modules["timing"], "same_cells", without_the_compiler)
        return SimpleNamespace(**modules)

    def test_it_wants_a_gpu(self, interop):
        if torch.cuda.is_available():
            pytest.skip("there is a CUDA device")
        status, _, error = interop("experiments", "lltm-cuda")
        assert (status, error.count("\n")) == (driver.UNAVAILABLE, 1)
        assert "needs a CUDA device" in error

    def test_agreement(self, lltm_cuda, monkeypatch):
        """With the operator's CPU kernel, which does not support float16."""
        tolerance = {d: t for d, t in lltm_cuda.agreement.TOLERANCE.items() if d != torch.float16}
        monkeypatch.setattr(lltm_cuda.agreement, "TOLERANCE", tolerance)
        torch.manual_seed(0)
        found = lltm_cuda.agreement.check(torch.device("cpu"))
        assert set(found) == {"float64", "float32", "bfloat16"}
        monkeypatch.setattr(lltm_cuda.agreement, "TOLERANCE", {torch.float32: 1e-12})
        with pytest.raises(CommandError, match="the CUDA cell disagrees with Python: "):
            lltm_cuda.agreement.check(torch.device("cpu"))

    def test_what_it_measures_it_reports(self, lltm_cuda, tmp_path):
        times = lltm_cuda.timing.measure(2, 3, 4, 2, 1, torch.device("cpu"), lambda _: None)
        assert set(times) == {"forward", "backward", "both"}
        for ways in times.values():
            assert set(ways) == set(lltm_cuda.ways.WAYS)
            assert all(clock["median"] > 0 for clocks in ways.values() for clock in clocks.values())
        speeds = {"copy": 2000.0, "forward": 1900.0, "backward": 1500.0}
        result = environment.environment() | {
            "gpu": {"name": "a GPU", "capability": "9.0", "multiprocessors": 1, "memory_bytes": 1, "cuda": "13.0"},
            "settings": {"batch": 2, "features": 3, "state": 4, "large_batch": 5, "large_state": 6},
            "agreement": {"float32": 1e-6},
            "times": times | {"graph": times["both"]},
            "bandwidth": {"float32": speeds},
        }
        lltm_cuda.report.draw(result, tmp_path / "a.svg")
        assert (tmp_path / "a.svg").stat().st_size > 10000
        both = times["both"]["Cython CUDA"]["device"]["median"]
        assert results.answer(lltm_cuda.report, "a-gpu", result).startswith(
            f"**Forward and backward take {both:.0f} µs "
        )
        section = results.section(lltm_cuda.report, result)
        assert "| float32 | 2000 | 1900 | 1500 | 0.95 | 0.75 |" in section
        assert section.count(", device | ") == section.count(", host | ") == 4


class TestBuildTime:
    """The experiment build-time, without minutes of compilation."""

    def test_what_it_measures_it_reports(self, tmp_path):
        report, measure = (experiments.load("build-time", name) for name in ("report", "measure"))
        times = {
            what: {"interop": calls.summary([1.0, 2.0, 3.0], 4), "cpp_extension": calls.summary([20.0], 4)}
            for what in measure.SITUATIONS
        }
        times["unchanged"] = {"interop": calls.summary([0.01234], 4), "cpp_extension": calls.summary([0.00441], 4)}
        result = environment.environment() | {
            "flags": measure.FLAGS,
            "settings": {"rounds": 3, "cold": 1},
            "times": times,
            "memory": {what: {"interop": 800, "cpp_extension": 1600} for what in ("cold", "edited")},
            "disk": {"header": 135.4, "module": 0.5},
        }
        report.draw(result, tmp_path / "a.svg")
        assert (tmp_path / "a.svg").stat().st_size > 10000
        answer = results.answer(report, "a", result)
        assert "After an edit, a module runs 2.00 s later with `interop.load` and 20.00 s later with" in answer
        section = results.section(report, result)
        assert "| after an edit, in a new process | 2.00 s | 20.00 s | 0.10 |" in section
        assert "| unchanged, in a new process | 12 ms | 4 ms | 2.80 |" in section
        assert "0.50 times as much" in section
        assert "135 MiB of disk" in section

    def test_an_edit_in_the_same_process_is_the_second_one(self, monkeypatch, tmp_path):
        """The first edit includes the time of Cython's import; a stand-in supplies the times."""
        measure = experiments.load("build-time", "measure")
        (tmp_path / measure.NAME).mkdir()
        for source in measure.WAYS.values():
            (tmp_path / measure.NAME / source).write_text("FACTOR")
        code = "import json, sys; print(json.dumps([(0, 7, 2)[i] for i in range(len(sys.argv) - 4)]))"
        (tmp_path / measure.NAME / "once.py").write_text(code)
        monkeypatch.setattr(measure, "FOLDER", tmp_path)
        monkeypatch.setattr(measure, "_disk", lambda _: {})
        for rounds in (0, 3):
            times = measure.measure(rounds, 0, lambda _: None)["times"]
            for way in measure.WAYS:
                assert times["unchanged"][way]["median"] == 0
                if rounds:
                    assert times["edited again"][way]["median"] == 2
                else:
                    assert times["edited"][way]["median"] == 7
                    assert "edited again" not in times

    def test_memory_is_that_of_all_processes(self):
        """A process and its child have 100 MiB each; both count."""
        measure = experiments.load("build-time", "measure")
        wait = "x = bytearray(b'1') * (100 << 20); import subprocess, sys, time; "
        inner = [sys.executable, "-c", wait + "time.sleep(1)"]
        code = f"{wait}subprocess.run({inner!r}); print('[1.0]')"
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        peak, seconds = measure._peak(process)
        assert 200 < peak < 350
        assert seconds == [1.0]

    def test_a_load_that_fails(self):
        measure = experiments.load("build-time", "measure")
        process = subprocess.Popen(
            [sys.executable, "-c", "1 / 0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        with pytest.raises(CommandError, match="loading a module failed: ZeroDivisionError"):
            measure._seconds(process)


class TestRecordedResults:
    @pytest.mark.parametrize("name", experiments.names())
    def test_the_readme_is_what_render_makes(self, name):
        readme = (experiments.FOLDER / name / "README.md").read_text(encoding="utf-8")
        made = results.with_results(name, readme, experiments.load(name, "report"))
        assert results.without_note(made) == results.without_note(readme), (
            f"run: python -m interop experiments {name} --render"
        )

    @pytest.fixture
    def drawn(self, monkeypatch, tmp_path):
        """Draws the figure of an experiment's recorded result."""

        def drawn(name):
            figures = []
            monkeypatch.setattr(plots, "save", lambda figure, path: figures.append(figure))
            _, result = results.newest(results.read_recorded(name))
            experiments.load(name, "report").draw(result, tmp_path / "a.svg")
            return figures[0]

        return drawn

    @pytest.mark.parametrize("name", experiments.names())
    @pytest.mark.long
    def test_a_plot_is_legible_on_a_phone(self, drawn, name):
        """No letter is small where the plot is as wide as a phone, and none is outside."""
        figure = drawn(name)
        figure.draw_without_rendering()
        assert figure.get_figwidth() == plots.WIDTH
        texts = [text for text in figure.findobj(matplotlib.text.Text) if text.get_text()]
        assert {text.get_text() for text in texts if text.get_fontsize() < plots.SMALL} == set()
        drawn_in = figure.get_tightbbox()
        assert drawn_in.x0 >= 0
        assert drawn_in.y0 >= 0
        assert drawn_in.x1 <= figure.get_figwidth()
        assert drawn_in.y1 <= figure.get_figheight()

    def test_no_legend_lies_over_the_times_of_the_cells(self, drawn):
        figure = drawn("lltm")
        assert [axes.get_legend() for axes in figure.axes] == [None] * 3
        (legend,) = figure.legends
        assert "matrix products alone" in {text.get_text() for text in legend.get_texts()}

    def test_conversions_are_grouped_and_only_ours_have_our_colour(self, drawn):
        report = experiments.load("bridges", "report")
        for axes in drawn("bridges").axes:
            places = [round(place, 6) for place in axes.get_yticks()]
            labels = dict(zip(places, (label.get_text() for label in axes.get_yticklabels()), strict=True))
            for bar in axes.patches:
                how = labels[round(bar.get_y() + bar.get_height() / 2, 6)]
                ours = matplotlib.colors.to_hex(bar.get_facecolor()) == plots.OURS
                assert ours is (how in {"interop", "of a tensor", "as_memoryview"}), how
            assert {"interop", *report.measure.BARS} & set(labels.values()) > {"interop"}

    @pytest.mark.parametrize("name", experiments.names())
    def test_what_is_measured_is_there(self, name):
        for path in experiments.load(name, "report").MEASURED:
            assert list(experiments.CHECKOUT.glob(path)), path

    def test_the_index_is_what_render_makes(self):
        text = (experiments.FOLDER / "index.md").read_text(encoding="utf-8")
        assert overview.with_table(text) == text, "run: python -m interop experiments crossing --render"

    @pytest.mark.parametrize("name", experiments.names())
    def test_a_page_begins_with_a_short_question(self, name):
        question = overview.first_question((experiments.FOLDER / name / "README.md").read_text(encoding="utf-8"))
        assert question.endswith("?")
        assert len(question) < 120

    @pytest.mark.parametrize("name", experiments.names())
    def test_the_order_of_a_page(self, name):
        readme = (experiments.FOLDER / name / "README.md").read_text(encoding="utf-8")
        headings = re.findall(r"^## (.*)$", readme, re.MULTILINE)
        assert headings[:2] == ["Run it", "Question"]
        order = [
            headings.index(heading) for heading in ("Question", "Setup", "Method", "Results", "What it does not show")
        ]
        assert order == sorted(order)
        assert readme.startswith(f"# {readme[2:].partition(chr(10))[0]}\n\n<!-- answer: ")
        assert "interop experiments" in readme.partition("## Run it")[2].partition("## ")[0]

    @pytest.mark.parametrize("name", experiments.names())
    def test_each_result_is_complete_and_has_its_plot(self, name):
        recorded = results.read_recorded(name)
        assert recorded
        for machine, result in recorded.items():
            assert {"date", "machine", "versions", "git", "flags", "settings"} <= result.keys()
            assert (experiments.FOLDER / name / "results" / f"{machine}.svg").exists()

    @pytest.mark.parametrize(
        ("file", "changed"),
        [
            ("docs/experiments/gil/results/a-machine.json", False),
            ("docs/experiments/gil/results/another.svg", False),  # a new file
            ("docs/experiments/gil/README.md", False),
            ("docs/experiments/gil/measure.py", True),
            ("docs/experiments/gil/new.pyx", True),
            ("docs/experiments/index.md", False),
            ("README.md", True),
            ("interop/abi.py", True),
        ],
    )
    def test_what_is_recorded_is_no_change_of_the_sources(self, monkeypatch, tmp_path, file, changed):
        """Otherwise the first of two results in a row would turn the second into one "with changes"."""
        for path in ("gil/results/a-machine.json", "gil/README.md", "gil/measure.py", "index.md"):
            (tmp_path / "docs/experiments" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "docs/experiments" / path).write_text("old")
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
        for command in (["init"], ["add", "."], ["commit", "-m", "sources"]):
            subprocess.run([*git, *command], cwd=tmp_path, capture_output=True, check=True)
        monkeypatch.setattr(environment, "CHECKOUT", tmp_path)
        assert environment._git()["changed"] is False
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("new")
        assert environment._git()["changed"] is changed

    def test_a_readme_without_its_marks_is_named(self):
        with pytest.raises(CommandError, match=r"README\.md of experiment lltm needs the lines"):
            results.with_results("lltm", "# No marks", experiments.load("lltm", "report"))

    @pytest.mark.parametrize(
        ("cpu", "name"),
        [
            ("AMD EPYC", "amd-epyc-2-cores"),
            ("Intel(R) Xeon(R) Platinum 8480+ CPU @ 2.00GHz", "intel-xeon-platinum-8480-2-cores"),
        ],
    )
    def test_a_machine_has_a_file_name(self, monkeypatch, cpu, name):
        monkeypatch.setattr(environment, "_cpu", lambda: cpu)
        monkeypatch.setattr(environment, "_cores", lambda: 2)
        for free_threaded in (False, True):
            monkeypatch.setattr(environment, "_free_threaded", lambda value=free_threaded: value)
            assert environment.machine_name() == name + free_threaded * "-free-threaded"
