"""The doctor finds what is wrong with modules that are really broken, and runs where ``import interop`` fails."""

import importlib.machinery
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import torch
from conftest import TESTS, run

import interop
from interop import __main__ as command_line
from interop.abi import NAME
from interop.demangle import demangle
from interop.doctor import environment
from interop.doctor.finding import Level
from interop.paths import get_source_dir
from interop.toolchain import find_torch

pytest.importorskip("elftools", reason="modules are read with pyelftools, which is not installed")
from interop.doctor.module import examine_module

SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
PACKAGE = Path(interop.__file__).parent
LIB = Path(torch.__file__).parent / "lib"
MODULE = """
#include <Python.h>
{declarations}
static PyModuleDef definition = {{PyModuleDef_HEAD_INIT, "{name}"}};
PyMODINIT_FUNC PyInit_{name}() {{
  {statements}
  return PyModuleDef_Init(&definition);
}}
"""


@pytest.fixture
def compile_module(tmp_path):
    """Compiles a module of a few lines, without torch's headers; its file is in a folder of its own."""

    def compile_one(
        name="m", *flags, declarations="", statements="", symbol=None, file=None, folder=tmp_path, linked=()
    ):
        folder.mkdir(exist_ok=True)
        source = tmp_path / f"{name}.cpp"
        text = MODULE.format(name=symbol or name, declarations=declarations, statements=statements)
        source.write_text(text)
        output = folder / (file or f"{name}{SUFFIX}")
        include = f"-I{sysconfig.get_path('include')}"
        # Wanted are also libraries that nothing is used of.
        link = ["-Wl,--no-as-needed", f"-L{LIB}", *linked]
        run(["c++", "-std=c++20", "-w", "-shared", "-fPIC", include, source, "-o", output, *flags, *link])
        return output

    return compile_one


@pytest.fixture
def bootstrapped(compile_module, tmp_path):
    """Makes both files of a module as interop.build does, of which the second does not use torch."""

    def make(name, abi):
        native = compile_module(name, file=f"_{name}_{abi}{SUFFIX}")
        entry = tmp_path / f"{name}{SUFFIX}"
        macros = [f"-DINTEROP_MODULE={name}", f'-DINTEROP_ABI="{abi}"', f'-DINTEROP_NATIVE="{native.name}"']
        bootstrap = Path(get_source_dir(), "bootstrap.cpp")
        include = f"-I{sysconfig.get_path('include')}"
        run(["c++", "-std=c++20", "-shared", "-fPIC", include, *macros, bootstrap, "-o", entry])
        return entry, native

    return make


def found(path, level=Level.PROBLEM, **options):
    """What is wrong with a module: by subject, the text and the fix."""
    return {
        finding.subject: f"{finding.text} -> {finding.fix}"
        for finding in examine_module(path, **options)
        if finding.level is level
    }


class TestModulesThatAreWell:
    def test_a_module_without_torch(self, compile_module):
        findings = examine_module(compile_module())
        assert {finding.level for finding in findings} == {Level.OK}
        text = {finding.subject: finding.text for finding in findings}["import"]
        assert text == "m can be imported, with no import of torch before it"

    def test_both_files_of_a_module_of_ours(self, bootstrapped):
        entry, native = bootstrapped("m", NAME)
        findings = {finding.subject: finding.text for finding in examine_module(native)}
        assert f"built for torch {torch.__version__.rpartition('.')[0]}" in findings["torch"]
        assert f"_m_{NAME}" in findings["files"]
        assert findings["import"].startswith("m can be imported")
        # Either file stands for both.
        assert examine_module(native, run=False) == examine_module(entry, run=False)

    def test_this_package(self):
        """A module in a package that imports torch."""
        (path,) = PACKAGE.glob("_bridges.*.so")
        assert found(path) == {}


class TestBrokenModules:
    def test_built_for_another_torch(self, bootstrapped):
        for path in bootstrapped("m", "torch_2_99"):
            text = found(path)["torch"]
            assert "built for torch 2.99, compiled by GCC" in text
            assert f"but torch {torch.__version__} is installed" in text
            assert "pip install --no-build-isolation" in text

    def test_the_words_in_the_guide(self, bootstrapped):
        page = (TESTS.parent / "docs" / "building-guide.md").read_text()
        ((text, fix),) = re.findall(r"```\nproblem  torch  (.*)\nfix: (.*)\n```", page)
        entry, _ = bootstrapped("m", "torch_2_11")
        (wrong,) = (finding for finding in examine_module(entry) if finding.level is Level.PROBLEM)
        assert re.fullmatch(".*".join(map(re.escape, text.split("..."))), wrong.text)
        assert wrong.fix == fix

    def test_half_a_module(self, bootstrapped):
        path, native = bootstrapped("m", NAME)
        native.rename(native.with_name(native.name.replace(NAME, "torch_2_1")))
        text = found(path)["files"]
        assert f"its second half, {native.name}, is not beside it" in text
        assert "_m_torch_2_1." in text

    def test_torch_is_not_imported_first(self, compile_module, tmp_path):
        path = compile_module(linked=["-lc10"])
        text = found(path)["import"]
        assert "m can be imported after torch, and not before: ImportError: libc10.so" in text
        assert "interop.build.Extension" in text
        # In a package that imports torch nothing is wrong with it.
        package = tmp_path / "package"
        package.mkdir()
        (package / "__init__.py").write_text("import torch\n")
        assert found(Path(shutil.copy(path, package))) == {}

    def test_a_copy_of_libc10(self, compile_module, tmp_path):
        shutil.copy(LIB / "libc10.so", tmp_path / "libc10.so")
        path = compile_module("m", "-Wl,-rpath,$ORIGIN", linked=["-lc10"])
        text = found(path)["torch twice"]
        assert str(tmp_path / "libc10.so") in text
        assert "Key already registered" in text
        assert "auditwheel" in text

    def test_an_rpath_to_another_torch(self, compile_module, tmp_path):
        other = tmp_path / "other"
        other.mkdir()
        shutil.copy(LIB / "libc10.so", other)
        text = found(compile_module("m", f"-Wl,-rpath,{other}", linked=["-lc10"]))["RPATH"]
        assert "leads to another torch" in text

    def test_an_rpath_of_another_machine(self, compile_module):
        text = found(compile_module("m", "-Wl,-rpath,/no/such/folder"), Level.WARNING)["RPATH"]
        assert "there is no /no/such/folder" in text

    @pytest.mark.parametrize(
        ("declaration", "call", "name", "fix"),
        [
            ("int forgotten(int);", "forgotten(1);", "forgotten(int)", "is its file among the sources"),
            ('extern "C" int plain();', "plain();", "plain", 'write no extern "C"'),
            ("namespace at { void gone(); }", "at::gone();", "at::gone()", "compiled for another release"),
            (
                "namespace c10::cuda { void warn(); }",
                "c10::cuda::warn();",
                "c10::cuda::warn()",
                "of a torch with CUDA" if torch.version.cuda is None else "another release",
            ),
            ('extern "C" int cudaMalloc();', "cudaMalloc();", "cudaMalloc", "is not linked to it"),
            ('extern "C" int PyGone_New();', "PyGone_New();", "PyGone_New", "another release of Python"),
            ('extern "C" int __kmpc_fork_call();', "__kmpc_fork_call();", "__kmpc_fork_call", "compile with g++"),
            (
                "struct THPException { static int set(); };",
                "THPException::set();",
                "THPException::set()",
                "CATCH_ALL_ERRORS",
            ),
        ],
    )
    def test_a_missing_symbol(self, compile_module, declaration, call, name, fix):
        text = found(compile_module(declarations=declaration, statements=call))["symbols"]
        assert f"nothing defines {name}" in text
        assert fix in text

    def test_the_abi_from_before_cpp11(self, compile_module):
        path = compile_module(
            "m",
            "-D_GLIBCXX_USE_CXX11_ABI=0",
            declarations="#include <string>\nnamespace c10 { void old(const std::string&); }",
            statements="c10::old({});",
        )
        text = found(path)["symbols"]
        assert "nothing defines c10::old(std::string const&)" in text
        assert "compile the module without -D_GLIBCXX_USE_CXX11_ABI=0" in text

    def test_symbols_of_torch_that_are_there(self, compile_module):
        path = compile_module(
            declarations="namespace c10::detail {\n"
            "void torchCheckFail(const char*, const char*, unsigned, const char*); }",
            statements='if (definition.m_size) c10::detail::torchCheckFail("", "", 0, "");',
            linked=["-lc10"],
        )
        assert found(path, Level.OK, run=False)["symbols"].startswith("all ")

    def test_a_missing_library(self, compile_module, tmp_path):
        run(["cc", "-shared", "-x", "c", os.devnull, "-o", tmp_path / "libgone.so"])
        path = compile_module(linked=[f"-L{tmp_path}", "-lgone"])
        (tmp_path / "libgone.so").unlink()
        text = found(path)["libraries"]
        assert "libgone.so is not found" in text
        assert "LD_LIBRARY_PATH" in text

    def test_a_missing_library_of_torch(self, compile_module, tmp_path):
        run(["cc", "-shared", "-x", "c", os.devnull, "-o", tmp_path / "libtorch_gone.so"])
        path = compile_module(linked=[f"-L{tmp_path}", "-ltorch_gone"])
        (tmp_path / "libtorch_gone.so").unlink()
        assert f"torch {torch.__version__} has no such library" in found(path)["libraries"]

    def test_a_newer_system(self, compile_module, tmp_path):
        """A module that asks for a version of a library's interface which the one here does not have."""
        versions = tmp_path / "versions"
        for version in ("V_2", "V_1"):  # linked to the newer, run with the older
            versions.write_text(f"{version} {{ global: versioned; }};\n")
            command = ["cc", "-shared", "-x", "c", "-", "-x", "none", f"-Wl,--version-script={versions}"]
            output = tmp_path / "libversioned.so"
            subprocess.run([*command, "-o", output], input="int versioned(void) { return 1; }", text=True, check=True)
            if version == "V_2":
                path = compile_module(
                    "m",
                    "-Wl,-rpath,$ORIGIN",
                    declarations='extern "C" int versioned();',
                    statements="versioned();",
                    linked=[f"-L{tmp_path}", "-lversioned"],
                )
        text = found(path)["libraries"]
        assert "libversioned.so has no V_2" in text
        assert "newer" in text

    def test_another_python(self, compile_module):
        text = found(compile_module(file="m.cpython-39-x86_64-linux-gnu.so"))["Python"]
        assert "built for CPython 3.9; this is 3." in text
        assert "rebuild" in text

    def test_a_renamed_file(self, compile_module):
        text = found(compile_module("m", symbol="original"))["import"]
        assert "there is no PyInit_m; there is PyInit_original" in text
        assert f"call it original{SUFFIX}" in text

    def test_a_library_that_is_no_module(self, tmp_path):
        path = tmp_path / "m.so"
        run(["cc", "-shared", "-x", "c", os.devnull, "-o", path])
        assert "none at all" in found(path)["import"]

    def test_another_kind_of_machine(self, compile_module):
        path = compile_module()
        data = bytearray(path.read_bytes())
        data[18:20] = (183).to_bytes(2, "little")  # e_machine: EM_AARCH64
        path.write_bytes(data)
        assert "for EM_AARCH64 with 64 bits" in found(path)["machine"]

    def test_a_crash(self, compile_module):
        text = found(compile_module(statements="*(volatile int*)0 = 1;"))["import"]
        assert "the process ended by SIGSEGV" in text

    def test_an_error_of_its_own(self, compile_module):
        path = compile_module(statements='PyErr_SetString(PyExc_OSError, "as it likes"); return nullptr;')
        assert "m cannot be imported: OSError: as it likes" in found(path)["import"]

    def test_a_second_openmp(self, compile_module, tmp_path):
        run(["cc", "-shared", "-x", "c", os.devnull, "-o", tmp_path / "libiomp5.so"])
        path = compile_module(
            "m", "-Wl,-rpath,$ORIGIN", statements='PyImport_ImportModule("torch");', linked=[f"-L{tmp_path}", "-liomp5"]
        )
        text = found(path, Level.WARNING)["OpenMP"]
        assert "2 runtimes are loaded" in text
        assert "libiomp5.so" in text

    @pytest.mark.parametrize("content", [b"", b"text", b"\x7fELF"])
    def test_no_library(self, tmp_path, content):
        path = tmp_path / "m.so"
        path.write_bytes(content)
        assert "is no ELF file" in found(path)["file"]


class TestEnvironment:
    def findings(self, examine, level=Level.PROBLEM):
        return [f"{one.subject}: {one.text} -> {one.fix}" for one in examine() if one.level is level]

    def test_all_is_well_here(self):
        for examine in environment.SECTIONS.values():
            assert self.findings(examine) == []

    def test_no_compiler(self, monkeypatch):
        monkeypatch.setenv("CXX", "no-such-compiler")
        (text,) = self.findings(environment.tools)
        assert "no-such-compiler does not run (the environment variable CXX names it)" in text
        assert "apt-get install g++" in text

    def test_a_compiler_without_cpp20(self, monkeypatch, tmp_path):
        old = tmp_path / "old"
        old.write_text('#!/bin/sh\ncase "$*" in *c++20*) exit 1;; esac\nexec c++ "$@"\n')
        old.chmod(0o755)
        monkeypatch.setenv("CXX", str(old))
        (text,) = self.findings(environment.tools)
        assert "has no C++20" in text

    def test_an_old_numpy(self, monkeypatch, tmp_path):
        metadata = tmp_path / "numpy-1.26.4.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 1.26.4\n")
        monkeypatch.syspath_prepend(tmp_path)
        (text,) = self.findings(environment.python)
        assert "numpy: 1.26.4, and 2 or newer is needed -> pip install 'numpy>=2'" in text

    def test_two_openmp_runtimes(self):
        finding = environment.openmp_finding(["/a/libgomp.so.1", "/b/libomp.so", "/c/libcomp.so", "/libgomp-a3.so.1.0"])
        assert finding.level is Level.WARNING
        assert finding.text.startswith("3 runtimes are loaded")

    @pytest.mark.skipif(torch.version.cuda is None, reason="torch is built without CUDA, so no nvcc is wanted")
    def test_cuda_without_nvcc(self, monkeypatch, tmp_path):
        monkeypatch.setenv("CUDA_HOME", str(tmp_path))
        assert "set CUDA_HOME" in "".join(self.findings(environment.torch, Level.WARNING))

    def test_torch_is_found_without_importing_it(self):
        there = find_torch()
        assert (there.version, there.cuda) == (torch.__version__, torch.version.cuda)
        assert Path(there.lib_dir) == LIB
        assert there.uses_openmp == torch.backends.openmp.is_available()

    def test_names_of_cpp(self):
        assert demangle("_ZN3c105ErrorD1Ev") == "c10::Error::~Error()"
        assert demangle("PyList_New") is None
        assert demangle("_Znonsense") is None


def doctor(*arguments, path=(), **options):
    """The exit status and the output of a process of its own."""
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))}
    command = [sys.executable, "-P", "-m", "interop", "doctor", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=300, **options)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def copied(tmp_path):
    """A folder with a copy of this package, without its compiled half, as in a checkout."""
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "*.cpp")
    shutil.copytree(PACKAGE, tmp_path / "site" / "interop", ignore=ignored)
    for name in ("pxd", "csrc"):
        (tmp_path / "site" / name).symlink_to(TESTS.parent / name)
    return tmp_path / "site"


class TestCommand:
    def test_all_is_well(self, bootstrapped):
        path, _ = bootstrapped("m", NAME)
        status, out, error = doctor(path)
        assert (status, error) == (0, "")
        assert out.endswith("no problems, no warnings\n")
        assert torch.__version__ in out
        assert str(path) in out

    def test_a_broken_module_is_status_1(self, tmp_path):
        (tmp_path / "m.so").touch()
        status, out, error = doctor(tmp_path / "m.so")
        assert (status, error) == (1, "")
        assert "problem  file  is no ELF file" in out
        assert "fix: name a compiled extension module" in out
        assert "\n1 problem, no warnings\n" in out

    def test_where_import_interop_fails(self, copied):
        """This package was built for another torch: the doctor says so, and the import does not get in its way."""
        info = copied / "interop" / "_build_info.py"
        info.write_text(info.read_text().replace(NAME, "torch_2_99").replace(torch.__version__, "2.99.0"))
        failed = subprocess.run(
            [sys.executable, "-P", "-c", "import interop"],
            env=os.environ | {"PYTHONPATH": str(copied)},
            capture_output=True,
            text=True,
        )
        assert "ImportError: torch-interop was built for torch 2.99.0" in failed.stderr
        status, out, error = doctor(path=[copied])
        assert (status, error) == (1, "")
        assert f"built for torch 2.99.0, but torch {torch.__version__} is running" in out
        assert "fix: pip install --no-build-isolation --force-reinstall" in out
        assert "\n1 problem, no warnings\n" in out

    def test_in_a_checkout_that_is_not_built(self, copied):
        (copied / "interop" / "_build_info.py").unlink()
        status, out, error = doctor(path=[copied])
        assert (status, error) == (1, "")
        assert "is a checkout without its compiled half" in out
        assert "fix: leave that folder, or build it there: make demo" in out

    def test_without_torch(self, tmp_path):
        (tmp_path / "torch.py").write_text("raise ImportError('no torch here')\n")
        status, out, error = doctor(path=[tmp_path])
        assert (status, error) == (1, "")
        assert "problem  torch  is not installed" in out
        assert "fix: pip install torch" in out

    def test_a_torch_that_cannot_be_imported(self, tmp_path):
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "__init__.py").write_text("raise OSError('libcudart.so.12: cannot open')\n")
        (tmp_path / "torch" / "version.py").write_text("__version__ = '2.13.0'\ncuda = None\n")
        status, out, error = doctor(path=[tmp_path])
        assert (status, error) == (1, "")
        assert "cannot be imported: OSError: libcudart.so.12" in out

    def test_without_pyelftools(self, tmp_path):
        (tmp_path / "elftools.py").write_text("raise ModuleNotFoundError(name='elftools')\n")
        (tmp_path / "m.so").touch()
        status, out, error = doctor(tmp_path / "m.so", path=[tmp_path])
        assert status == 1
        assert "compiler" in out  # what needs none was shown
        assert error == "error: to look at modules, the doctor needs elftools; run: pip install pyelftools\n"

    @pytest.mark.parametrize(("name", "kind"), [("nothing.so", "no file"), ("", "a folder")])
    def test_wrong_arguments(self, tmp_path, capsys, name, kind):
        assert command_line.main(["doctor", str(tmp_path / name)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: MODULE.so must be a compiled extension module, and ")
        assert error.endswith(f"is {kind}\n")

    def test_other_commands_say_where_to_look(self, copied):
        info = copied / "interop" / "_build_info.py"
        info.write_text(info.read_text().replace(NAME, "torch_2_99"))
        command = [sys.executable, "-P", "-m", "interop", "experiments"]
        variables = os.environ | {"PYTHONPATH": str(copied)}
        done = subprocess.run(command, capture_output=True, text=True, env=variables)
        assert done.returncode == 1
        assert done.stderr.startswith("error: torch-interop was built for torch")
        assert done.stderr.endswith("See also: python -m interop doctor\n")
        assert done.stderr.count("\n") == 1

    def test_on_a_terminal(self, monkeypatch, capsys):
        """rich makes a table of it where there is a terminal, with the same words."""
        from rich.console import Console

        from interop.doctor import page
        from interop.doctor.finding import ok, problem

        monkeypatch.setenv("FORCE_COLOR", "1")
        assert Console().is_terminal
        page.show("Title", [ok("subject", "is fine"), problem("other", "is not", "mend it")])
        out = capsys.readouterr().out
        assert "\x1b[" in out
        for word in ("Title", "subject", "is fine", "✗", "is not", "→ ", "mend it"):
            assert word in out
