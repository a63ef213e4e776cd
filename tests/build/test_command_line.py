"""``python -m interop`` in a terminal and for programs: next steps, examples, JSON, colours, statuses, completion."""

import importlib
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import run

import interop
from interop import __main__ as command_line
from interop.cli import STATUSES, Parser
from interop.experiments import DOCS

COMMAND = [sys.executable, "-P", "-m", "interop"]
PYX = "cimport ATen as at\ncimport torch\ndef double(torch.Tensor x not None): return torch.wrap(at.mul(x.cdata, 2))\n"


@pytest.fixture
def shell(tmp_path):
    """Runs a line in bash, in an empty folder, with this `python` and a cache of its own."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    variables = os.environ | {"PATH": path, "PYTHONSAFEPATH": "1", "INTEROP_CACHE_DIR": str(tmp_path / "cache")}
    return lambda line: run(["bash", "-euo", "pipefail", "-c", line], cwd=tmp_path, env=variables)


def examples(name):
    """The examples in the help of a command."""
    with pytest.MonkeyPatch.context() as patch:
        made = []
        patch.setattr(Parser, "parse_args", lambda self, _: made.append(self) or sys.exit())
        patch.setattr(Parser, "parse_known_args", lambda self, _: made.append(self) or sys.exit())
        with pytest.raises(SystemExit):
            importlib.import_module(command_line.COMMANDS[name][0]).main([])
    return made[0].examples


class TestNext:
    def steps(self, command):
        status, out, error = command()
        assert (status, error) == (0, "")
        ready, *lines = out.partition("\n\n")[0].splitlines()
        assert ready == f"torch-interop {interop.__version__} is ready, for torch {torch.__version__}. Next:"
        assert all(f"  {name} " in out for name in command_line.COMMANDS)
        return [line.partition("  # ")[0].strip() for line in lines]

    def test_in_an_empty_folder(self, command, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert self.steps(command)[0] == "python -m interop new cells"

    @pytest.mark.long
    @pytest.mark.extended
    def test_beside_a_source(self, command, tmp_path, monkeypatch, shell):
        monkeypatch.chdir(tmp_path)
        Path("it is.pyx").touch()
        Path("a.pyx").write_text(PYX)
        assert shell(self.steps(command)[0]).startswith("<module 'a' from")

    def test_in_a_project(self, command, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("setup.py").touch()
        assert self.steps(command)[0] == "pip install --no-build-isolation ."

    def test_beside_a_project_from_new(self, command, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        first = self.steps(command)[0]
        assert command(*first.split()[3:])[0] == 0
        assert self.steps(command)[0] == "cd cells && pip install --no-build-isolation ."

    def test_in_the_checkout(self, command, monkeypatch):
        monkeypatch.chdir(DOCS.parent)
        steps = self.steps(command)
        assert steps[0] == "make demo"
        assert "python -m interop experiments lltm" in steps

    def test_in_an_unpacked_sdist(self, command, tmp_path, monkeypatch):
        """It has a folder of pages, but neither a Makefile nor experiments."""
        (tmp_path / "docs").mkdir()
        (tmp_path / "setup.py").touch()
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("interop.overview.DOCS", tmp_path / "docs")
        assert self.steps(command) == ["pip install --no-build-isolation .", "python -m interop doctor"]

    def test_where_nothing_is_ready(self, tmp_path):
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "__init__.py").touch()
        done = subprocess.run(COMMAND, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout.startswith("Not ready: torch is not installed in this environment; run: pip install torch\n")


def test_the_version(command):
    assert command("--version") == (0, f"torch-interop {interop.__version__}, for torch {torch.__version__}\n", "")


def test_experiments_of_an_installed_package(command, monkeypatch, tmp_path):
    """The command is listed there too. Its help says where it works."""
    monkeypatch.setattr("interop.experiments.DOCS", tmp_path)
    status, out, error = command("experiments", "--help")
    assert (status, error) == (0, "")
    assert "run them in a checkout" in out
    status, out, error = command("experiments", "crossing")
    assert (status, out) == (1, "")
    assert "run them in a checkout" in error


class TestExamples:
    @pytest.mark.parametrize("name", command_line.COMMANDS)
    def test_each_command_has_some(self, name, capsys):
        """The help of each command lists at least two."""
        with pytest.raises(SystemExit):
            command_line.main([name, "--help"]) or sys.exit()
        out = capsys.readouterr().out
        shown = out.partition("\nexamples:\n")[2].splitlines()
        assert [line.strip() for line in shown[1::2]] == [*examples(name)]
        assert len(shown) >= 4

    @staticmethod
    def imported(*arguments, **options):
        """The modules that a command imports."""
        command = [sys.executable, "-P", "-X", "importtime", "-m", "interop", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, **options)
        return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}

    @pytest.mark.parametrize("name", command_line.COMMANDS)
    def test_help_imports_no_torch(self, name):
        imported = self.imported(name, "--help")
        assert "interop.cli" in imported
        assert not imported & {"torch", "Cython", "setuptools"}

    def test_a_translation_imports_no_torch(self, tmp_path):
        """It would double its time."""
        (tmp_path / "m.pyx").write_text(PYX)
        imported = self.imported("cythonize", "m.pyx", "--output", "m.cpp", "--headers", "headers", cwd=tmp_path)
        assert "interop.cython.translate" in imported
        assert not imported & {"torch", "numpy"}

    @pytest.mark.slow
    def test_they_run(self, shell, tmp_path):
        """In the order of this list, because some need files of others."""
        (tmp_path / "m.pyx").write_text(PYX)
        (tmp_path / "build" / "lib").mkdir(parents=True)
        for name in ("new", "cythonize", "config", "doctor", "cache"):
            for line in examples(name):
                if line.endswith("build/lib/ops.so"):
                    suffix = shell("interop-config --suffix").strip()
                    line = line.replace("ops.so", f"m{suffix}")
                    (tmp_path / "m.so").rename(tmp_path / "build" / "lib" / f"m{suffix}")
                if "cells/ops.pyx" in line:
                    line = f"cd cells && {line}"
                printed = shell(line)
                if "--json" in line:
                    json.loads(printed)
        assert (tmp_path / "cells" / "build" / "ops.d").is_file()
        assert (tmp_path / "kernels").is_dir()

    def test_those_of_experiments_are_accepted(self, monkeypatch):
        """The experiments do not run here: the run of all experiments has them."""
        from experiments.harness import driver

        ran = []
        monkeypatch.setattr(driver, "run", lambda name, arguments: ran.append((name, arguments)))
        for line in examples("experiments"):
            assert command_line.main(shlex.split(line)[3:]) == 0
        assert ran == [("crossing", ["--quick"]), ("crossing", []), ("lltm", ["--help"])]


class TestJson:
    def test_the_doctor(self, command, tmp_path):
        damaged = tmp_path / "m.so"
        damaged.write_bytes(b"no module")
        status, out, _ = command("doctor", "--json", damaged)
        report = json.loads(out)
        plain = command("doctor", damaged)[1]
        assert status == 1
        levels = [finding["level"] for section in report["sections"] for finding in section["findings"]]
        assert (report["problems"], report["warnings"]) == (levels.count("problem"), levels.count("warning"))
        assert [section["title"] for section in report["sections"]][-1] == str(damaged)
        for section in report["sections"]:
            for finding in section["findings"]:
                assert finding.keys() == {"subject", "text", "level", "fix"}
                assert f"  {finding['level']:<8} {finding['subject']}" in plain
                assert finding["fix"] in plain

    def test_the_doctor_has_none_of_what_is_no_finding(self, command):
        assert command("doctor", "--coverage", "--json")[0] == 2

    def test_experiments(self, command):
        listed = json.loads(command("experiments", "--list", "--json")[1])
        plain = command("experiments")[1]
        assert [f"{one['name']:<22}{one['title']}" for one in listed] == plain.splitlines()

    def test_cache(self, command, tmp_path, monkeypatch):
        monkeypatch.setenv("INTEROP_CACHE_DIR", str(tmp_path))
        (tmp_path / "nvrtc").mkdir()
        (tmp_path / "nvrtc" / "kernel").write_bytes(bytes(12345))
        shown = json.loads(command("cache", "--json")[1])
        assert (shown["folder"], shown["bytes"]) == (str(tmp_path), 12345)
        assert shown["kinds"]["nvrtc"] == {"entries": 1, "bytes": 12345}
        assert json.loads(command("cache", "--clear", "--json")[1]) == {"removed": 12345, "in_use": 0}
        assert json.loads(command("cache", "--json")[1])["bytes"] == 0


def on_a_terminal(arguments, **variables):
    """The output of a command on a terminal."""
    ours, its = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    environment |= {"TERM": "xterm-256color"} | variables
    with subprocess.Popen([*COMMAND, *arguments], stdout=its, stderr=its, env=environment):
        os.close(its)
        printed = b""
        try:
            while part := os.read(ours, 1 << 16):
                printed += part
        except OSError:  # the end of a terminal on Linux
            pass
    os.close(ours)
    return printed.decode()


@pytest.mark.long
@pytest.mark.extended
def test_colours_are_for_terminals():
    assert "\x1b[32m" in on_a_terminal(["doctor"])
    assert "\x1b[32m" not in on_a_terminal(["doctor"], NO_COLOR="1")
    assert json.loads(on_a_terminal(["doctor", "--json"]))["problems"] == 0
    assert "\x1b" not in run([*COMMAND, "doctor"])


@pytest.mark.long
class TestStatuses:
    def test_the_help_has_them(self, command, capsys):
        with pytest.raises(SystemExit):
            command_line.main(["--help"])
        out = capsys.readouterr().out
        assert all(f"  {status:<14}{meaning}" in out for status, meaning in STATUSES.items())

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_signals(self, number):
        """The status is 128 + the signal."""
        code = f"import interop.cli, os, sys; sys.exit(interop.cli.run(lambda: os.kill(os.getpid(), {number})))"
        if number == signal.SIGINT:  # main() makes a status of it; a shell's background processes ignore it
            code = (
                "import os, signal, sys, time\nfrom interop import __main__, config\n"
                "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                f"config.main = lambda _: (os.kill(os.getpid(), {number}), time.sleep(60))\n"
                "sys.exit(__main__.main(['config']))"
            )
        done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (128 + number, "")
        assert done.returncode in STATUSES


LONG = "a" * 300
ONLY_READ = "/proc/version"  # even for root


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["doctor", f"{LONG}.so"], f"error: File name too long: '{LONG}.so'\n"),
        (
            ["cythonize", f"{LONG}.pyx", "--output", "m.cpp", "--headers", "h"],
            f"error: File name too long: '{LONG}.pyx'\n",
        ),
        (
            ["cythonize", "m.pyx", "--output", "m.cpp", "--headers", f"{ONLY_READ}/h"],
            "error: Not a directory: '/proc/vers",
        ),
        (["cythonize", "m.pyx", "--output", f"{LONG}/m.cpp", "--headers", "h"], f"error: File name too long: '{LONG}"),
    ],
)
def test_files_that_the_system_does_not_accept(command, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    Path("m.pyx").write_text("cimport torch\n")
    status, _, error = command(*arguments)
    assert error.startswith(message)
    assert (status, error.count("\n")) == (1, 1)


@pytest.mark.parametrize("name", ["", *command_line.COMMANDS])
def test_in_a_folder_that_was_removed(tmp_path, name):
    line = f"mkdir gone; cd gone; rmdir ../gone; exec {shlex.join(COMMAND)} {name}"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True)
    message = "error: the current folder was removed; change to another one\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


@pytest.mark.parametrize("encoding", ["ascii", "utf-8:strict"])
@pytest.mark.extended
def test_names_that_the_output_cannot_encode(tmp_path, encoding):
    folder = os.fsencode(tmp_path) + (b"/\xc3\xa9" if encoding == "ascii" else b"/\xff")
    variables = {
        **os.environb,
        b"INTEROP_CACHE_DIR": folder,
        b"PYTHONIOENCODING": encoding.encode(),
        b"PYTHONUTF8": b"1",
    }
    done = subprocess.run([*COMMAND, "cache"], capture_output=True, env=variables)
    if encoding == "ascii":
        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr.startswith(b"error: cannot write the output in ascii: ordinal not in range(128): '")
    else:
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.startswith(folder + b": ")


@pytest.mark.parametrize("digits", [19, 400, 5000])
def test_a_limit_of_many_digits(command, monkeypatch, digits):
    monkeypatch.setenv("INTEROP_CACHE_LIMIT", "9" * digits)
    status, out, error = command("cache")
    assert (status, error) == (0, "")
    assert int(out.partition("Beyond ")[2].partition(".")[0]) > 10**11  # MiB


class TestCompletion:
    def complete(self, line, tmp_path, start=3, program=COMMAND):
        """The completions that argcomplete's hook gets for the shell."""
        variables = {"_ARGCOMPLETE": str(start), "COMP_LINE": line, "COMP_POINT": str(len(line))}
        file = tmp_path / "completions"
        done = subprocess.run(
            program,
            env=os.environ | variables | {"_ARGCOMPLETE_STDOUT_FILENAME": str(file)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return {word.strip() for word in file.read_text().split("\013")}

    def test_commands(self, tmp_path):
        assert self.complete("python -m interop ", tmp_path) == {*command_line.COMMANDS, "--help", "--version"}
        assert self.complete("python -m interop do", tmp_path) == {"doctor"}

    @pytest.mark.parametrize("name", command_line.COMMANDS)
    def test_options(self, tmp_path, name):
        out = run([*COMMAND, name, "--help"])
        offered = self.complete(f"python -m interop {name} --", tmp_path)
        assert {"--help"} < offered
        assert all(f" {option} " in out.replace(",", " ").replace("\n", " ") for option in offered)

    def test_experiments(self, tmp_path):
        from experiments import names

        assert set(names()) <= self.complete("python -m interop experiments ", tmp_path)

    @pytest.mark.parametrize(
        "variables", [{"_ARGCOMPLETE": "x"}, {"COMP_LINE": None}, {"COMP_POINT": None}, {"COMP_POINT": "y"}], ids=str
    )
    def test_what_no_shell_sets(self, command, monkeypatch, variables):
        usual = {"_ARGCOMPLETE": "3", "COMP_LINE": "python -m interop ", "COMP_POINT": "0"}
        for name, value in (usual | variables).items():
            monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
        status, out, error = command("nonsense")
        assert (status, out) == (2, "")
        assert error.startswith("error: there is no command 'nonsense'")

    def test_the_hook_finds_us(self):
        """It looks for a mark near the beginning of a file."""
        run([sys.executable, "-P", "-m", "argcomplete._check_module", "interop"])
        for name in ("interop.__main__", "interop.config"):
            head = Path(importlib.import_module(name).__file__).read_bytes()[:1024]
            assert b"PYTHON_ARGCOMPLETE_OK" in head
