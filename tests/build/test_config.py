"""Flags for other build systems, and the CMake package, which builds a whole project."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import torch
from conftest import BUILD, PACKAGE, PROJECTS, built, fingerprint, needs_limited_api, needs_stable, run
from torch.utils import cpp_extension

import interop
from interop.abi import NAME
from interop.build import Extension
from interop.config import config
from interop.cython import cythonize_command
from interop.paths import get_cmake_dir, get_source_dir
from interop.stable_abi import stable_abi
from interop.toolchain import compiler, openmp_flags

SCRIPTS = Path(sysconfig.get_path("scripts"))
PROJECT = PROJECTS / "cmake"
STABLE_PROJECT = PROJECTS / "stable_build" / "src" / "stable_build"
GUARD = "cimport torch\n\ndef f():\n    cdef torch.NoGradGuard guard\n"


class TestConfig:
    def test_it_is_what_extensions_are_built_with(self, monkeypatch):
        monkeypatch.setenv("CFLAGS", "-O1")  # otherwise the flags contain -O2, which other build systems set
        extension, values = Extension("m", ["m.pyx"]), config()
        assert values["cflags"] == extension.extra_compile_args
        assert values["include_dirs"][: len(extension.include_dirs)] == extension.include_dirs
        assert values["include_dirs"][-1] == sysconfig.get_path("include")
        assert values["library_dirs"] == extension.library_dirs == cpp_extension.library_paths()
        assert values["libraries"] == extension.libraries
        assert values["abi"] == NAME
        assert values["torch"] == torch.__version__
        assert values["version"] == interop.__version__
        assert values["bootstrap"] == str(Path(get_source_dir(), "bootstrap.cpp"))
        assert all(Path(values[name]).exists() for name in ("pxd", "include", "cmake", "bootstrap"))

    def test_options(self, command):
        assert command("config", "--pxd") == (0, f"{interop.get_pxd_dir()}\n", "")
        assert command("config", "--include", "--cmake") == (0, f"{interop.get_include()} {get_cmake_dir()}\n", "")
        out = command("config", "--cflags")[1]
        assert shlex.split(out)[0] == f"-I{interop.get_include()}"
        assert command("config", "--libs")[1] == "-lc10 -ltorch -ltorch_cpu -ltorch_python\n"
        assert json.loads(command("config", "--json")[1]) == config()

    @needs_stable
    @pytest.mark.parametrize("arguments", [("2.11",), pytest.param(("2.11", "cp311"), marks=needs_limited_api)])
    def test_stable(self, monkeypatch, arguments):
        """The config command gives the flags of stable extensions."""
        monkeypatch.setenv("CFLAGS", "-O1")
        abi = stable_abi(*arguments)
        extension = Extension("m", ["m.pyx"], **dict(zip(("stable", "py_limited_api"), arguments, strict=False)))
        values = config(abi)
        macros = [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in extension.define_macros]
        assert values["cflags"] == [*extension.extra_compile_args, *macros]
        assert values["include_dirs"][:3] == extension.include_dirs
        (library,) = extension.extra_objects
        (folder,), (name,) = values["library_dirs"], values["libraries"]
        assert Path(folder, f"lib{name}.a") == Path(library)
        assert values["suffix"] == abi.suffix

    @needs_stable
    @needs_limited_api
    def test_stable_options(self, command):
        options = ["--stable", "2.11", "--py-limited-api", "cp311"]
        assert command("config", "--suffix", *options) == (0, ".abi3.so\n", "")
        assert "-DPy_LIMITED_API=0x030b0000" in shlex.split(command("config", "--cflags", *options)[1])
        assert command("config", "--libs", *options)[1] == "-linterop_stable\n"

    @needs_stable
    def test_wrong_stable_options(self, command):
        status, _, error = command("config", "--cflags", "--stable", "2.9")
        assert status == 2
        assert re.fullmatch(r"error: stable must be .* from '2\.11' to .*, got '2\.9'\n", error)
        status, _, error = command("config", "--cflags", "--py-limited-api", "cp311")
        assert status == 2
        assert "py_limited_api must be left out without stable" in error

    def test_wrong_options(self, command):
        status, _, error = command("config")
        assert (status, error.count("\n")) == (2, 1)
        assert "an option is missing; the options are: --pxd, --include" in error
        assert command("config", "--nonsense")[0] == 2

    def test_the_script_says_the_same(self):
        options = ["--cflags", "--ldflags", "--libs"]
        expected = run([sys.executable, "-P", "-m", "interop", "config", *options])
        assert run([SCRIPTS / "interop-config", *options]) == expected
        wrong = subprocess.run([SCRIPTS / "interop-config"], capture_output=True, text=True)
        assert wrong.returncode == 2
        assert wrong.stderr.startswith("error: an option is missing")

    @pytest.mark.parametrize(
        "start", [["-m", "interop", "config"], ["-Pminterop", "config"], [SCRIPTS / "interop-config"]]
    )
    def test_torch_is_not_imported(self, start):
        """The command imports neither torch nor Cython. Either would make it 20 times slower."""
        done = subprocess.run(
            [sys.executable, "-P", "-X", "importtime", *start, "--json"], capture_output=True, text=True, check=True
        )
        imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
        assert "interop.toolchain" in imported
        assert not imported & {"torch", "Cython", "setuptools", "interop.abi"}

    @pytest.mark.long
    def test_flags_on_a_command_line(self, tmp_path):
        flags, link = (
            shlex.split(run([SCRIPTS / "interop-config", *options]))
            for options in (["--cflags"], ["--ldflags", "--libs"])
        )
        rpath = f"-Wl,-rpath,{cpp_extension.library_paths()[0]}"
        python = [f"-L{sysconfig.get_config_var('LIBDIR')}", "-Wl,--allow-shlib-undefined"]
        build = [*compiler(), "-O0", *flags, "-Wl,--as-needed", PROJECT / "program.cpp", *link, *python, rpath]
        run([*build, "-o", tmp_path / "program"])
        has_openmp = int("-fopenmp" in openmp_flags())
        assert run([tmp_path / "program"]) == f"6 {has_openmp}\n"

    def test_without_torch(self, tmp_path):
        (tmp_path / "torch").mkdir()  # hides the installed torch
        (tmp_path / "torch" / "__init__.py").touch()
        done = subprocess.run(
            [sys.executable, "-P", "-m", "interop", "config", "--libs"],
            env=os.environ | {"PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1
        assert done.stderr == "error: torch is not installed in this environment; run: pip install torch\n"

    def test_another_torch(self, tmp_path):
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "__init__.py").touch()
        (tmp_path / "torch" / "version.py").write_text("__version__ = '2.99.0'\ncuda = None\n")
        done = subprocess.run(
            [sys.executable, "-P", "-m", "interop", "config", "--libs"],
            env=os.environ | {"PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1
        assert f"built for torch {torch.__version__}, but torch 2.99.0 is installed" in done.stderr


@pytest.mark.long
class TestOutput:
    """The behaviour of commands whose output cannot be written."""

    COMMANDS = (
        [sys.executable, "-P", "-m", "interop", "config", "--json"],
        [sys.executable, "-P", "-m", "interop", "--help"],
        [sys.executable, "-P", "-m", "interop", "experiments"],
        [sys.executable, "-P", "-m", "interop", "doctor"],
        [SCRIPTS / "interop-config", "--cflags"],
    )

    @pytest.mark.parametrize("command", COMMANDS)
    def test_nobody_reads_it(self, command):
        """Without a reader, as behind `| head`, the status is that of a process ended by SIGPIPE."""
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
        os.close(writer)
        assert (done.returncode, done.stderr) == (141, "")

    def test_the_disk_is_full(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run(self.COMMANDS[0], stdout=full, stderr=subprocess.PIPE, text=True)
        message = "error: cannot write the output: No space left on device\n"
        assert (done.returncode, done.stderr) == (1, message)

    @pytest.mark.parametrize("unbuffered", ["", "1"])
    @pytest.mark.parametrize("arguments", [["--help"], ["config", "--help"]])
    def test_the_disk_is_full_for_the_help(self, arguments, unbuffered):
        command, variables = [*self.COMMANDS[1][:-1], *arguments], os.environ | {"PYTHONUNBUFFERED": unbuffered}
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=variables)
        message = "error: cannot write the output: No space left on device\n"
        assert (done.returncode, done.stderr) == (1, message)

    def test_there_is_none(self):
        command = f"{sys.executable} -P -m interop doctor >&-"
        done = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (0, "")


class TestCythonize:
    @pytest.fixture
    def translate(self, tmp_path, command):
        def run_translate(name, text, *options):
            (tmp_path / name).write_text(text)
            output = ["--output", tmp_path / "out" / "m.cpp", "--headers", tmp_path / "headers"]
            return command("cythonize", tmp_path / name, *output, *options)

        return run_translate

    @pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
    @pytest.mark.parametrize("name", ["a b", "a#b", r"a\ b", r"a\\  b", "a$b", r"a\b", "a%b", "a # $(x)", "a:b"])
    def test_the_depfile_names_what_is_there(self, translate, tmp_path, monkeypatch, name):
        """make and ninja find each file, and begin again when one changes."""
        monkeypatch.delenv("MAKEFLAGS", raising=False)
        helper = tmp_path / name / "helper.pxd"
        helper.parent.mkdir()
        helper.write_text("cdef inline int one() noexcept: return 1\n")
        options = ["--include", helper.parent, "--depfile", tmp_path / "m.d"]
        assert translate("m.pyx", "from helper cimport one\ndef f(): return one()\n", *options) == (0, "", "")
        output = tmp_path / "out" / "m.cpp"
        (tmp_path / "Makefile").write_text(f"{output}:\n\ttouch $@\ninclude m.d\n")
        (tmp_path / "build.ninja").write_text(
            f"rule touch\n  command = touch $out\n  depfile = m.d\nbuild {output}: touch m.pyx\n"
        )
        for tool in (["make"], [shutil.which("ninja", path=SCRIPTS) or "ninja"]):
            run([*tool], cwd=tmp_path)
            up_to_date = run([*tool], cwd=tmp_path)
            assert "touch" not in up_to_date
            later = output.stat().st_mtime + 10
            os.utime(helper, (later, later))
            assert "touch" in run([*tool, "-n", *(["-v"] if "ninja" in tool[0] else [])], cwd=tmp_path)
            os.utime(helper, (0, 0))

    @pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
    @pytest.mark.parametrize("name", ["a=b", "plain"])
    def test_a_relative_output(self, tmp_path, monkeypatch, command, name):
        """The depfile names it as the caller did, as compilers do. make takes a first path with = for a variable."""
        monkeypatch.delenv("MAKEFLAGS", raising=False)
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        Path("m.pyx").write_text("from helper cimport one\ndef f(): return one()\n")
        Path("helper.pxd").write_text("cdef inline int one() noexcept: return 1\n")
        Path("Makefile").write_text("m.cpp:\n\ttouch $@\ninclude m.d\n")
        options = ["--output", "m.cpp", "--headers", "headers", "--depfile", "m.d"]
        assert command("cythonize", "m.pyx", *options) == (0, "", "")
        assert "touch" not in run(["make"])
        later = os.stat("m.cpp").st_mtime + 10
        os.utime("helper.pxd", (later, later))
        assert "touch" in run(["make"])

    def test_a_depfile_whose_paths_all_have_an_equals_sign(self, translate, tmp_path, monkeypatch):
        """make takes the whole list for the value of a variable."""
        monkeypatch.setattr(cythonize_command, "BUILD_INFO", tmp_path / "a=b" / "info.py")
        (tmp_path / "a=b").mkdir()
        status, _, error = translate("a=b/m.pyx", "def f(): pass\n", "--module", "m", "--depfile", tmp_path / "m.d")
        assert status == 0
        assert error.startswith("warning: --depfile: make does not find the dependencies with '=' in the path ")

    @pytest.mark.parametrize("name", ["a;touch here;b", "a|b"])
    def test_a_path_that_make_cannot_read(self, translate, tmp_path, name):
        """The rest would be a recipe, or prerequisites of another kind."""
        (tmp_path / name).mkdir()
        (tmp_path / name / "helper.pxd").write_text("cdef inline int one() noexcept: return 1\n")
        options = ["--include", tmp_path / name, "--depfile", tmp_path / "m.d"]
        status, _, error = translate("m.pyx", "from helper cimport one\ndef f(): return one()\n", *options)
        assert status == 1
        assert error.startswith(f"error: --depfile: a path must not contain {name[1]!r}, got ")
        assert not (tmp_path / "out" / "m.cpp").exists()

    def test_a_run_that_fails_at_its_end_leaves_no_output(self, translate, tmp_path):
        """make would take it for complete."""
        options = ["--depfile", tmp_path / "absent" / "m.d"]
        assert translate("m.pyx", "def f(): pass\n", *options)[0] == 1
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["m.cythonize"]
        assert not list((tmp_path / "out" / "m.cythonize").glob("unfinished*"))

    def test_two_runs_at_once(self, tmp_path):
        """`make -j` runs the recipe of `m.cpp m.d: m.pyx` once for each of them."""
        (tmp_path / "m.pyx").write_text("cdef public int twice(int x): return 2 * x\n")
        command = [sys.executable, "-P", "-m", "interop", "cythonize", "m.pyx", "--headers", "headers", "--output"]
        runs = [
            subprocess.Popen([*command, output], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
            for output in ("m.cpp", "m.cpp", "m.cc")
        ]
        assert [(one.communicate()[1], one.returncode) for one in runs] == [("", 0)] * len(runs)
        texts = [(tmp_path / name).read_text() for name in ("m.cpp", "m.cc")]
        assert [text.count("// translated from ") for text in texts] == [1, 1]
        assert "unfinished" not in texts[0] + texts[1]
        assert not list((tmp_path / "m.cythonize").glob("unfinished*"))

    def test_what_a_killed_run_left_is_removed_after_a_day(self, translate, tmp_path):
        old, new = (tmp_path / "out" / "m.cythonize" / f"unfinished-{name}" for name in ("old", "new"))
        for folder in (old, new):
            folder.mkdir(parents=True)
        os.utime(old, (0, 0))
        assert translate("m.pyx", "def f(): pass\n") == (0, "", "")
        assert (old.exists(), new.exists()) == (False, True)

    @pytest.mark.parametrize("name", ["m.cpp", "m.h"])
    def test_a_file_of_somebody_else_is_not_replaced(self, translate, tmp_path, name):
        """Cython asks so, too."""
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / name).write_text("int mine;\n")
        depfile = tmp_path / "m.d"
        status, _, error = translate("m.pyx", "cdef public int twice(int x): return 2 * x\n", "--depfile", depfile)
        assert status == 1
        assert not depfile.exists()
        assert error.endswith(f"{name} exists, and Cython did not write it: remove it, or change --output\n")
        assert [path.name for path in (tmp_path / "out").iterdir() if path.is_file()] == [name]
        assert (tmp_path / "out" / name).read_text() == "int mine;\n"

    def test_public_headers_lie_beside_the_output(self, translate, tmp_path):
        text = "cdef public int twice(int x): return 2 * x\ncdef api int thrice(int x): return 3 * x\n"
        assert translate("m.pyx", text) == (0, "", "")
        assert {"m.cpp", "m.h", "m_api.h"} <= {path.name for path in (tmp_path / "out").iterdir()}

    def test_a_header_that_is_a_folder(self, translate, tmp_path):
        (tmp_path / "out" / "m.h").mkdir(parents=True)
        status, _, error = translate("m.pyx", "cdef public int twice(int x): return 2 * x\n")
        path = str(tmp_path / "out" / "m.h")
        assert (status, error) == (1, f"error: {path!r} must be a file or not exist, but {path!r} is a folder\n")
        assert not (tmp_path / "out" / "m.cpp").exists()

    def test_settings_for_other_tools(self, translate):
        """They are for setuptools, which this command does not use."""
        assert translate("m.pyx", "# distutils: optional = True\ndef f(): pass\n") == (0, "", "")

    def test_an_error_without_a_line(self, translate, tmp_path):
        status, _, error = translate("m.pyx", "def f():\n    '\\udfff'\n")
        assert status == 1
        assert error.startswith(f"error: {tmp_path / 'm.pyx'}: Cython cannot write '\\udfff'")

    @pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
    def test_an_output_that_is_no_file(self, translate, tmp_path, command, kind):
        """Cython would remove it, and root may remove even devices."""
        output = tmp_path / "out" / "m.cpp"
        output.parent.mkdir()
        if kind == "pipe":
            os.mkfifo(output)
        elif kind == "folder":
            output.mkdir()
        else:
            output.symlink_to("/dev/full")
        before = output.lstat()
        status, out, error = translate("m.pyx", "def f(): pass\n")
        assert (status, out) == (2, "")
        assert error.startswith("error: FILE.cpp must be a file or not exist, but ")
        assert os.path.samestat(before, output.lstat())

    def test_what_is_written(self, translate, tmp_path):
        (tmp_path / "there").mkdir()
        (tmp_path / "there" / "helper.pxd").write_text("cdef inline int one() noexcept: return 1\n")
        text = "cimport torch\nfrom helper cimport one\ndef f(torch.Tensor x not None): return x.cdata.dim() + one()\n"
        options = ["--module", "package.m", "--include", tmp_path / "there", "--depfile", tmp_path / "m.d"]
        assert translate("m.pyx", text, *options) == (0, "", "")
        assert "package.m" in (tmp_path / "out" / "m.cpp").read_text()
        header = tmp_path / "headers" / "interop" / "functions.h"
        first = header.stat().st_mtime_ns
        depfile = (tmp_path / "m.d").read_text()
        assert depfile.startswith(f"{tmp_path / 'out' / 'm.cpp'}: ")
        for path in (tmp_path / "m.pyx", tmp_path / "there" / "helper.pxd", interop.get_pxd_dir()):
            assert f" {path}" in depfile
        # A second run, as by a build system after a change, leaves unchanged files untouched.
        assert translate("m.pyx", text, *options)[0] == 0
        assert header.stat().st_mtime_ns == first

    def test_errors_of_cython(self, translate):
        status, _, error = translate("m.pyx", "cimport torch\ndef f(:\n")
        assert status == 1
        assert "m.pyx:2:" in error
        assert re.fullmatch(r"error: \S*m\.pyx:2: Expected '\)', .*", error.splitlines()[-1])

    def test_checks_of_our_build(self, translate):
        status, _, error = translate("m.pyx", GUARD)
        assert status == 1
        assert error.endswith("guard = torch.NoGradGuard()\n")
        assert "m.pyx:4: 'guard' is declared but never assigned" in error

    @needs_stable
    def test_stable(self, translate, tmp_path):
        """`cythonize --stable` uses other headers of the same names, as the flags of `config --stable` do."""
        text = "cimport ATen as at\ndef f(): at.exp(at.zeros((2,)))\n"
        for options in ([], ["--stable"]):
            assert translate("m.pyx", text, *options) == (0, "", "")
            header = (tmp_path / "headers" / "interop" / "functions.h").read_text()
            assert ("interop/stable/" in header) is bool(options)

    @pytest.mark.parametrize(
        ("make", "kind"),
        [
            (os.mkdir, "a folder"),
            (os.mkfifo, "not a file"),
            (lambda path: path.symlink_to(os.devnull), "not a file"),
            (lambda path: path.symlink_to(path), "a link that leads to no file"),
            (lambda path: path.symlink_to("no.pyx"), "a link that leads to no file"),
        ],
        ids=["folder", "pipe", "device", "loop", "nothing"],
    )
    def test_no_file(self, command, tmp_path, monkeypatch, make, kind):
        monkeypatch.chdir(tmp_path)
        make(Path("m.pyx"))
        status, _, error = command("cythonize", "m.pyx", "--output", "o.cpp", "--headers", "h")
        assert (status, error) == (2, f"error: SOURCE.pyx must be a file, but 'm.pyx' is {kind}\n")

    def test_wrong_arguments(self, translate, command):
        status, _, error = command("cythonize", "no.pyx", "--output", "o.cpp", "--headers", "h")
        assert (status, error) == (2, "error: SOURCE.pyx must be a file, but there is no 'no.pyx'\n")
        status, _, error = translate("m.txt", "")
        assert status == 2
        assert "SOURCE.pyx must end in .pyx" in error
        status, _, error = translate("m.pyx", "", "--module", "a-b")
        assert status == 2
        assert "error: --module: name must be a module's dotted name" in error


class Cmake:
    """CMake in a build folder, with the package of this checkout."""

    def __init__(self, folder):
        self.folder = folder

    def configure(self, source, *options, check=True, python=sys.executable):
        shutil.rmtree(self.folder, ignore_errors=True)
        package = [f"-Dinterop_DIR={get_cmake_dir()}", f"-DPython_EXECUTABLE={python}"]
        return self("-G", "Ninja", "-S", source, "-B", self.folder, *package, *options, check=check)

    def build(self, check=True):
        return self("--build", self.folder, check=check)

    def __call__(self, *arguments, check=True):
        command = [SCRIPTS / "cmake", *arguments]
        path = os.pathsep.join([str(SCRIPTS), os.environ.get("PATH", "")])  # for ninja
        if check:
            return run(command, env=os.environ | {"PATH": path})
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, env=os.environ | {"PATH": path})


@pytest.fixture(scope="module")
def cmake_project():
    """A project with a module and a program, built by CMake and installed."""
    folder = BUILD / "cmake"
    cmake = Cmake(folder / "build")
    ours = [path.read_bytes() for path in (PROJECT / "CMakeLists.txt", *sorted(Path(get_cmake_dir()).rglob("*.cmake")))]
    with built(folder, fingerprint(PROJECT, PACKAGE / "config.py", extra=ours)) as missing:
        if missing:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(PROJECT, folder / "source")
            cmake.configure(folder / "source")
            cmake.build()
            cmake("--install", cmake.folder, "--prefix", folder / "installed")
    return cmake


@pytest.fixture(scope="module")
def stable_cmake_project():
    """A project with a stable module, built by CMake and installed."""
    folder = BUILD / "stable_cmake"
    cmake = Cmake(folder / "build")
    text = (
        "cmake_minimum_required(VERSION 3.20)\nproject(stable_cmake LANGUAGES CXX)\nfind_package(interop REQUIRED)\n"
        "interop_add_cython_module(ops ops.pyx target.cpp MODULE package.ops STABLE 2.11 LIMITED_API cp311)\n"
        "interop_install_module(ops DESTINATION package)\n"
    )
    ours = [text, *(path.read_bytes() for path in sorted(Path(get_cmake_dir()).rglob("*.cmake")))]
    with built(folder, fingerprint(STABLE_PROJECT, PACKAGE / "config.py", extra=ours)) as missing:
        if missing:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(STABLE_PROJECT, folder / "source")
            (folder / "source" / "CMakeLists.txt").write_text(text)
            cmake.configure(folder / "source")
            cmake.build()
            cmake("--install", cmake.folder, "--prefix", folder / "installed")
    return cmake


def configure_text(tmp_path, text, **options):
    """CMake's error when it configures a project with this text."""
    (tmp_path / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.20)\nproject(wrong LANGUAGES CXX)\n{text}\n"
    )
    done = Cmake(tmp_path / "build").configure(tmp_path, check=False, **options)
    assert done.returncode == 1
    return " ".join(done.stderr.split())


@pytest.mark.long
class TestCmake:
    def test_a_module(self, bare, cmake_project):
        """A module of Cython and C++, in a package, works in a process that has not imported torch."""
        code = (
            "from package import cells; import torch; x = torch.randn(4, 2)\n"
            "assert cells.scaled(x, 3.0).equal(torch.tanh(x) * 3.0)\n"
            "print(cells.row_count(x), cells.__name__)"
        )
        assert bare(code, cmake_project.folder.parent / "installed") == "4 package.cells\n"

    def test_modules_of_one_name_in_two_packages(self, bare, cmake_project):
        """`errno` is also a macro of C."""
        code = (
            "import package.errno, other.errno\n"
            "print(package.errno.NAME, other.errno.NAME, package.errno.PLACE, other.errno.PLACE)"
        )
        said = bare(code, cmake_project.folder.parent / "installed")
        assert said == "package.errno other.errno here there\n"

    def test_its_two_files(self, cmake_project):
        names = {path.name.partition(".")[0] for path in (cmake_project.folder.parent / "installed").rglob("*.so")}
        assert names == {"cells", f"_cells_{NAME}", "errno", f"_errno_{NAME}"}

    def test_a_program(self, cmake_project):
        has_openmp = int("-fopenmp" in openmp_flags())
        assert run([cmake_project.folder / "program"]) == f"6 {has_openmp}\n"

    def test_flags(self, cmake_project):
        """The flags are those of interop.build, optimised if there is no build type."""
        rules = (cmake_project.folder / "build.ninja").read_text()
        (flags,) = {line.strip() for line in rules.splitlines() if line.startswith("  FLAGS = ") and "-O2" in line}
        for flag in (*config()["cflags"][1:], "-O2", "-fPIC"):
            assert flag in flags.split()
        assert "++20" in flags

    @pytest.mark.extended
    def test_what_is_built_again(self, cmake_project):
        """A second build does nothing. After a change in a cimported file, it builds the module alone."""
        assert "no work to do" in cmake_project.build()
        shape = cmake_project.folder.parent / "source" / "shape.pxd"
        shape.touch()
        plan = cmake_project("--build", cmake_project.folder, "--", "-n")
        assert "Translating cells.pyx" in plan
        assert "program" not in plan
        source = shape.with_name("cells.pyx")
        text = source.read_text()
        source.write_text(GUARD)
        try:
            failed = cmake_project.build(check=False)
        finally:
            source.write_text(text)
        cmake_project.build()  # so that the next test run has nothing to build
        assert failed.returncode
        assert "cells.pyx:4: 'guard' is declared but never assigned" in failed.stdout + failed.stderr

    @needs_stable
    @needs_limited_api
    @pytest.mark.extended
    def test_a_stable_module(self, bare, stable_cmake_project):
        """A stable module is one file, compiled as setuptools compiles it, and linked to no library of torch."""
        installed = stable_cmake_project.folder.parent / "installed"
        assert [path.name for path in installed.rglob("*.so")] == ["ops.abi3.so"]
        said = eval(bare("from package import ops; print(ops.compiled_with())", installed))
        assert said["target"] == said["other source"] == "0x20b000000000000"
        assert (said["limited"], said["python"], said["texts"]) == (True, "0x30b0000", ["2.11", "cp311"])
        rules = (stable_cmake_project.folder / "build.ninja").read_text()
        assert "libtorch" not in rules
        assert "-fvisibility=hidden" in rules
        assert "no work to do" in stable_cmake_project.build()

    def test_another_python(self, tmp_path):
        python = tmp_path / "python3"  # this Python, without interop
        python.write_text(f'#!/bin/sh\ncase "$*" in *interop*) set -- -I -S "$@";; esac\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        error = configure_text(tmp_path, "find_package(interop REQUIRED)", python=python)
        assert "No module named interop" in error
        assert "Name another Python with -DPython_EXECUTABLE=" in error
        assert "--no-build-isolation" in error

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            ("interop_add_cython_module(cells)", "the sources are missing, such as cells.pyx"),
            (
                "interop_add_cython_module(cells a.pyx cells.cpp b.pyx)",
                "a module has one .pyx, got a.pyx;b.pyx; add a module for each",
            ),
            ("interop_add_cython_module(a-b a.pyx)", "MODULE must be a module's dotted name, got a-b"),
            ("interop_add_cython_module(cells a.pyx MODULE a..b)", "MODULE must be a module's dotted name, got a..b"),
            ("interop_add_cython_module(cells a.pyx STABLE ${UNSET})", "there is no value after STABLE"),
            ("interop_add_cython_module(cells a.pyx MODULE)", "there is no value after MODULE"),
            ("interop_install_module(cells)", "DESTINATION is missing"),
            ("interop_install_module(cells DESTINATION a COMPONENT b)", "it takes only DESTINATION, got COMPONENT;b"),
            ("interop_add_cython_module(cells a.pyx STABLE 2.9)", "STABLE and LIMITED_API: error: stable must"),
            (
                "interop_add_cython_module(cells a.pyx LIMITED_API cp311)",
                "py_limited_api must be left out without stable",
            ),
        ],
    )
    @pytest.mark.extended
    def test_wrong_calls(self, tmp_path, call, message):
        assert message in configure_text(tmp_path, f"find_package(interop REQUIRED)\n{call}")

    @needs_stable
    @needs_limited_api
    @pytest.mark.parametrize("config", ["", "_RELEASE"])
    def test_folders_of_modules_that_would_write_the_same_file(self, tmp_path, config):
        """An ordinary and a stable module, whose suffixes differ, may be in one folder."""
        error = configure_text(
            tmp_path,
            "set(CMAKE_BUILD_TYPE Release)\n"
            f'set(CMAKE_LIBRARY_OUTPUT_DIRECTORY{config} "${{CMAKE_BINARY_DIR}}/all")\n'
            "find_package(interop REQUIRED)\n"
            "interop_add_cython_module(one a.cpp MODULE p.ops)\n"
            "interop_add_cython_module(two a.cpp MODULE p.ops STABLE 2.11 LIMITED_API cp311)\n"
            "interop_add_cython_module(three a.cpp MODULE q.ops)\n"
            "interop_add_cython_module(four a.cpp MODULE q.ops STABLE 2.11 LIMITED_API cp311)\n"
            "foreach(target one two three three_bootstrap four)\n"
            f"  get_target_property(folder ${{target}} LIBRARY_OUTPUT_DIRECTORY{config})\n"
            '  file(RELATIVE_PATH folder "${CMAKE_BINARY_DIR}" "${folder}")\n'
            "  list(APPEND folders ${target} ${folder})\nendforeach()\n"
            'message(FATAL_ERROR "${folders}")\n',
        )
        own = "three.interop/module"
        assert f"one;all;two;all;three;{own};three_bootstrap;{own};four;four.interop/module" in error

    PRINT = (
        "cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES CXX)\nfind_package(interop REQUIRED)\n"
        "get_target_property(link interop::interop INTERFACE_LINK_LIBRARIES)\n"
        'message("flags: ${interop_cflags}")\nmessage("libraries: ${link}")\n'
    )

    def printed(self, cmake, source, *options, **others):
        (source / "CMakeLists.txt").write_text(self.PRINT)
        package = [f"-Dinterop_DIR={get_cmake_dir()}", *options]
        command = [SCRIPTS / "cmake", "-G", "Ninja", "-S", source, "-B", cmake.folder, *package]
        path = os.pathsep.join([str(SCRIPTS), os.environ.get("PATH", "")])
        done = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            env=os.environ | {"PATH": path} | others,
        )
        assert done.returncode == 0, done.stderr
        return dict(line.split(": ", 1) for line in done.stderr.splitlines() if ": " in line)

    @pytest.mark.parametrize("option", [True, False])
    def test_a_compiler_with_arguments_in_a_folder_with_spaces(self, tmp_path, monkeypatch, option):
        """The check for -fopenmp runs the compiler with the same arguments."""
        folder = tmp_path / "it's a folder"
        folder.mkdir()
        command = folder / "g++"
        command.write_text('#!/bin/sh\n[ "$1" = -m64 ] || exit 1\nexec g++ "$@"\n')
        command.chmod(0o755)
        python = f"-DPython_EXECUTABLE={sys.executable}"
        if option:
            words = self.printed(Cmake(tmp_path / "b"), tmp_path, python, f"-DCMAKE_CXX_COMPILER={command};-m64")
        else:
            words = self.printed(Cmake(tmp_path / "b"), tmp_path, python, CXX=f"{shlex.quote(str(command))} -m64")
        monkeypatch.setenv("CXX", "g++")
        assert words["flags"].split(";") == config()["cflags"]

    def test_a_python_with_another_torch(self, tmp_path):
        """Configuring the same folder again with another Python finds the torch of that Python."""
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "torch").symlink_to(Path(torch.__file__).parent)
        python = tmp_path / "python3"
        python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}/site exec {sys.executable} "$@"\n')
        python.chmod(0o755)
        cmake = Cmake(tmp_path / "build")
        first = self.printed(cmake, tmp_path, f"-DPython_EXECUTABLE={sys.executable}")["libraries"]
        second = self.printed(cmake, tmp_path, f"-DPython_EXECUTABLE={python}")["libraries"]
        installed, other = str(Path(torch.__file__).parent), str(tmp_path / "site" / "torch")
        assert installed in first
        assert second == first.replace(installed, other)

    def test_a_version_that_is_to_come(self, tmp_path):
        error = configure_text(tmp_path, "find_package(interop 99 REQUIRED)")
        assert f"version: {interop.__version__}" in error
