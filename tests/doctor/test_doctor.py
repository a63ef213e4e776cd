"""The doctor finds the faults of modules that are really broken, and runs if ``import interop`` fails."""

import errno
import importlib.machinery
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from conftest import FREE_THREADED, OTHER_ABI, OTHER_TORCH, TESTS, needs_stable, run, with_own_gil
from elftools.elf.elffile import ELFFile
from elftools.elf.hash import ELFHashTable
from hypothesis import example, given, settings
from hypothesis import strategies as st

import interop
from interop import __main__ as command_line
from interop.abi import NAME
from interop.demangle import demangle
from interop.doctor import _count, elf, environment, loader
from interop.doctor.finding import Level
from interop.doctor.module import examine_module
from interop.new import write_project
from interop.paths import get_source_dir
from interop.toolchain import SUFFIXES, find_torch

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

STABLE = '[[gnu::used]] static const char note[] = "torch-interop stable abi: torch>={}";'
"""The note that stable/include/interop/stable/shim.h leaves in a module."""


@pytest.fixture
def compile_module(tmp_path):
    """Compiles a module of a few lines without torch's headers, into the test's folder unless `folder` is given."""

    def compile_one(
        name="m", *flags, declarations="", statements="", symbol=None, file=None, folder=tmp_path, linked=()
    ):
        folder.mkdir(exist_ok=True)
        source = tmp_path / f"{name}.cpp"
        text = MODULE.format(name=symbol or name, declarations=declarations, statements=statements)
        source.write_text(text)
        output = folder / (file or f"{name}{SUFFIX}")
        include = f"-I{sysconfig.get_path('include')}"
        # Also links libraries that the module does not use.
        link = ["-Wl,--no-as-needed", f"-L{LIB}", *linked]
        run(["c++", "-std=c++20", "-w", "-shared", "-fPIC", include, source, "-o", output, *flags, *link])
        return output

    return compile_one


@pytest.fixture
def bootstrapped(compile_module, tmp_path):
    """Makes both files of a module as interop.build does. The second file does not use torch."""

    def make(name, abi, *flags):
        native = compile_module(name, file=f"_{name}_{abi}{SUFFIX}")
        entry = tmp_path / f"{name}{SUFFIX}"
        macros = [
            f"-DINTEROP_INIT=PyInit_{name}",
            f'-DINTEROP_MODULE="{name}"',
            f'-DINTEROP_ABI="{abi}"',
            f'-DINTEROP_NATIVE="{native.name}"',
        ]
        bootstrap = Path(get_source_dir(), "bootstrap.cpp")
        include = f"-I{sysconfig.get_path('include')}"
        run(["c++", "-std=c++20", "-shared", "-fPIC", include, *macros, *flags, bootstrap, "-o", entry])
        return entry, native

    return make


def compile_versioned(folder, version):
    """Compiles libversioned.so into the folder. Its function `versioned` has this version."""
    source, script = folder / "versioned.c", folder / "versions"
    source.write_text("int versioned(void) { return 1; }")
    script.write_text(f"{version} {{ global: versioned; }};\n")
    run(["cc", "-shared", "-fPIC", source, f"-Wl,--version-script={script}", "-o", folder / "libversioned.so"])


def found(path, level=Level.PROBLEM, **options):
    """The findings of one level about a module: text and fix by subject."""
    return all_found(path, **options)[level]


def all_found(path, **options):
    """The findings about a module by level, from one examination, which starts processes that import torch."""
    levels = {level: {} for level in Level}
    for finding in examine_module(path, **options):
        levels[finding.level][finding.subject] = f"{finding.text} -> {finding.fix}"
    return levels


@pytest.mark.long
class TestModulesThatAreWell:
    def test_a_module_without_torch(self, compile_module):
        findings = examine_module(compile_module())
        assert {finding.level for finding in findings} == {Level.OK}
        text = {finding.subject: finding.text for finding in findings}["import"]
        assert text == "m can be imported without importing torch first"

    def test_no_rpath(self, compile_module, tmp_path):
        """The text names torch only if the module links to it, directly or through another library."""
        system = "none: the loader searches the system's folders for its libraries"
        torchs = "none: torch's libraries are found after torch is imported"
        assert found(compile_module("plain"), Level.OK, run=False)["RPATH"].startswith(system)
        assert found(compile_module("user", linked=["-lc10"]), Level.OK, run=False)["RPATH"].startswith(torchs)
        link = ["-Wl,--no-as-needed", f"-L{LIB}", "-lc10"]
        run(["cc", "-shared", "-x", "c", os.devnull, "-o", tmp_path / "libbetween.so", *link])
        between = compile_module("m", linked=[tmp_path / "libbetween.so"])
        assert found(between, Level.OK, run=False)["RPATH"].startswith(torchs)

    @needs_stable
    def test_a_stable_module(self, compile_module):
        """The findings of a stable module name no library of torch, and only the oldest release."""
        path = compile_module(file="m.abi3.so", declarations=STABLE.format("2.11, cp311"))
        findings = {finding.subject: finding.text for finding in examine_module(path)}
        assert findings["torch"].startswith("stable, torch >= 2.11, abi3 cp311, compiled by GCC")
        assert findings["import"] == "m can be imported without importing torch first"
        path = compile_module("n", declarations=STABLE.format("2.10"))
        assert found(path, Level.OK, run=False)["torch"].startswith("stable, torch >= 2.10, compiled by")

    @pytest.mark.parametrize("flag", ["-O0", "-O2", "-O3", "-Os"])
    def test_both_files_of_a_module_of_ours(self, bootstrapped, flag):
        """Each file leads to the other, also if -O3 splits a long name in the first."""
        entry, native = bootstrapped("m", NAME, flag)
        findings = {finding.subject: finding.text for finding in examine_module(native)}
        assert f"built for torch {torch.__version__.rpartition('.')[0]}" in findings["torch"]
        assert findings["files"] == f"two: Python imports {entry.name}, the code is in {native.name}"
        assert findings["import"].startswith("m can be imported")
        # Either file gives the findings of both.
        assert examine_module(native, run=False) == examine_module(entry, run=False)

    def test_this_package(self):
        """The doctor finds nothing wrong with a module of this package, which imports torch."""
        (path,) = PACKAGE.glob("_bridges.*.so")
        assert found(path) == {}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with a package of modules with relative imports, without __init__.py."""
    site = tmp_path_factory.mktemp("site")
    folder = site / "outer" / "inner"
    folder.mkdir(parents=True)
    (folder / "sibling.py").touch()
    for name, source in {
        "rel": "from ..inner import sibling",
        "beyond": "from ....... import sibling",
        "absolute": "from . import sibling\nimport outer.inner",
        "broken": "from . import sibling\nraise OSError('as it likes')",
    }.items():
        (site / f"{name}.pyx").write_text(source)
        run([sys.executable, "-m", "cython", "-3", site / f"{name}.pyx"])
        include = f"-I{sysconfig.get_path('include')}"
        output = folder / f"{name}{SUFFIX}"
        run(["cc", "-O0", "-w", "-shared", "-fPIC", include, site / f"{name}.c", "-o", output])
    return site


@pytest.mark.long
@pytest.mark.extended
class TestNamespacePackages:
    """Modules with relative imports, in folders without __init__.py."""

    @pytest.mark.parametrize("init", [False, True])
    @pytest.mark.parametrize("by", ["path", "current folder"])
    def test_the_package_begins_where_imports_do(self, site, tmp_path, monkeypatch, by, init):
        """The doctor finds the root of the package, also if the module's own folder has an __init__.py."""
        copy = shutil.copytree(site / "outer", tmp_path / "outer").parent
        if init:
            (copy / "outer" / "inner" / "__init__.py").touch()
        if by == "path":
            monkeypatch.syspath_prepend(copy)
        else:
            monkeypatch.chdir(copy)
        path = copy / "outer" / "inner" / f"rel{SUFFIX}"
        levels = all_found(path)
        assert levels[Level.PROBLEM] == levels[Level.WARNING] == {}
        assert levels[Level.OK]["import"].startswith("outer.inner.rel can be imported")

    def test_where_it_begins_is_not_known(self, site):
        path = site / "outer" / "inner" / f"rel{SUFFIX}"
        levels = all_found(path)
        assert levels[Level.PROBLEM] == {}
        text = levels[Level.WARNING]["import"]
        assert "rel belongs to a package with an unknown root: ImportError: attempted relative" in text
        assert "run the doctor in the folder from which the module can be imported" in text

    @pytest.mark.parametrize("name", ["beyond", "absolute"])
    def test_the_guess_is_wrong(self, site, monkeypatch, name):
        monkeypatch.chdir(site.parent)
        path = site / "outer" / "inner" / f"{name}{SUFFIX}"
        levels = all_found(path)
        assert levels[Level.PROBLEM] == {}
        assert f"{site.name}.outer.inner.{name} belongs to a package" in levels[Level.WARNING]["import"]

    def test_an_error_of_its_own(self, site, monkeypatch):
        monkeypatch.chdir(site)
        text = found(site / "outer" / "inner" / f"broken{SUFFIX}")["import"]
        assert "outer.inner.broken cannot be imported: OSError: as it likes" in text


@pytest.mark.long
@pytest.mark.extended
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
        text = text.replace("for torch 2.11", f"for torch {OTHER_TORCH}")
        entry, _ = bootstrapped("m", OTHER_ABI)
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
        """A module that needs an import of torch before it gets a warning. It works after that import."""
        path = compile_module(linked=["-lc10"])
        levels = all_found(path)
        assert levels[Level.PROBLEM] == {}
        text = levels[Level.WARNING]["import"]
        assert "m can be imported after torch, but not before: ImportError: libc10.so" in text
        assert "interop.build.Extension" in text
        # In a package that imports torch there is no warning.
        package = tmp_path / "package"
        package.mkdir()
        (package / "__init__.py").write_text("import torch\n")
        there = Path(shutil.copy(path, package))
        levels = all_found(there)
        assert levels[Level.PROBLEM] == levels[Level.WARNING] == {}

    def test_a_module_that_imports_torch_itself(self, compile_module):
        path = compile_module(statements='if (PyImport_ImportModule("torch") == nullptr) return nullptr;')
        levels = all_found(path)
        assert levels[Level.PROBLEM] == levels[Level.WARNING] == {}

    def test_torch_does_not_help(self, compile_module):
        """A module that is linked to torch is broken if it fails with and without an import of torch before it."""
        error = 'PyErr_SetString(PyExc_OSError, "as it likes"); return nullptr;'
        text = found(compile_module(statements=error, linked=["-lc10"]))["import"]
        assert "m cannot be imported: OSError: as it likes" in text

    def test_a_hidden_torch(self, bootstrapped, tmp_path):
        entry, _ = bootstrapped("m", NAME)
        (tmp_path / "torch.py").touch()
        wrong = found(entry)
        assert "m cannot be imported" in wrong["import"]
        assert f"a file torch.py in the folder {tmp_path} hides a package" in wrong["torch"]

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
                "needs a torch with CUDA" if torch.version.cuda is None else "another release",
            ),
            (
                "namespace std { void gone(); }",
                "std::gone();",
                "std::gone()",
                "a newer C++ library than the installed one",
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

    @pytest.mark.skipif(torch.version.cuda is None, reason="torch is built without CUDA, and defines no such function")
    def test_a_symbol_of_a_library_for_cuda_that_is_not_linked(self, compile_module):
        path = compile_module(
            declarations="namespace c10::cuda { signed char current_device(); }",
            statements="c10::cuda::current_device();",
        )
        text = found(path)["symbols"]
        assert "this is in torch's libc10_cuda.so, and the module is not linked to it" in text
        assert "'c10_cuda' in libraries=[...]" in text

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

    @pytest.mark.parametrize("outer", ["RPATH", "RUNPATH"])
    @pytest.mark.parametrize("inner", ["RPATH", "RUNPATH", None])
    def test_an_rpath_is_handed_on(self, compile_module, tmp_path, outer, inner):
        """A library finds another by the module's RPATH, as in the wheels of scipy, unless it has its own RUNPATH."""
        libs, kinds = tmp_path / "libs", {"RPATH": "--disable-new-dtags", "RUNPATH": "--enable-new-dtags"}
        libs.mkdir()
        build = ["cc", "-shared", f"-L{libs}", "-Wl,--no-as-needed", "-x", "c", os.devnull]
        run([*build, "-o", libs / "libinner.so"])
        own = [f"-Wl,{kinds[inner]},-rpath,$ORIGIN/none"] if inner else []
        run([*build, "-o", libs / "libmiddle.so", *own, "-linner"])
        path = compile_module("m", f"-Wl,{kinds[outer]},-rpath,$ORIGIN/libs", linked=[f"-L{libs}", "-lmiddle"])
        wrong = found(path)
        if outer == "RPATH" and inner != "RUNPATH":
            assert wrong == {}
            assert found(path, Level.OK)["import"].startswith("m can be imported")
        else:
            assert "libinner.so, which libmiddle.so needs, is not found" in wrong["libraries"]

    def test_a_library_that_is_loaded_by_then(self, compile_module, tmp_path):
        """The module's RUNPATH finds a library for the module, and so also for another library that needs it."""
        build = ["cc", "-shared", f"-L{tmp_path}", "-Wl,--no-as-needed", "-x", "c", os.devnull]
        run([*build, "-o", tmp_path / "libinner.so"])
        run([*build, "-o", tmp_path / "libmiddle.so", "-linner"])
        runpath = "-Wl,--enable-new-dtags,-rpath,$ORIGIN"
        path = compile_module("m", runpath, linked=[f"-L{tmp_path}", "-lmiddle", "-linner"])
        assert found(path) == {}
        assert found(path, Level.OK)["import"].startswith("m can be imported")

    def test_a_missing_library_of_torch(self, compile_module, tmp_path):
        run(["cc", "-shared", "-x", "c", os.devnull, "-o", tmp_path / "libtorch_gone.so"])
        path = compile_module(linked=[f"-L{tmp_path}", "-ltorch_gone"])
        (tmp_path / "libtorch_gone.so").unlink()
        assert f"torch {torch.__version__} has no such library" in found(path)["libraries"]

    @pytest.mark.parametrize(
        ("name", "cause"),
        [
            (
                "torch_cuda_gone",
                f"it was built with a torch for CUDA, but torch {torch.__version__} has no CUDA"
                if torch.version.cuda is None
                else f"torch {torch.__version__} has no such library",
            ),
            ("cudart_gone", "this library is part of CUDA, and torch is built "),
        ],
    )
    def test_a_missing_library_of_cuda(self, compile_module, tmp_path, name, cause):
        run(["cc", "-shared", "-x", "c", os.devnull, "-o", tmp_path / f"lib{name}.so"])
        path = compile_module(linked=[f"-L{tmp_path}", f"-l{name}"])
        (tmp_path / f"lib{name}.so").unlink()
        assert cause in found(path)["libraries"]

    def test_a_newer_system(self, compile_module, tmp_path):
        """The doctor reports that a module needs a version of a library's interface that the library here lacks."""
        for version in ("V_2", "V_1"):  # linked to the newer one, run with the older one
            compile_versioned(tmp_path, version)
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

    def test_a_library_for_a_newer_system(self, compile_module, tmp_path):
        """The same for a library that the module is linked to."""
        link = ["cc", "-shared", "-fPIC", f"-L{tmp_path}", "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed"]
        (tmp_path / "middle.c").write_text("int versioned(void); int middle(void) { return versioned(); }")
        for version in ("V_2", "V_1"):
            compile_versioned(tmp_path, version)
            if version == "V_2":
                run([*link, tmp_path / "middle.c", "-lversioned", "-o", tmp_path / "libmiddle.so"])
        path = compile_module("m", "-Wl,-rpath,$ORIGIN", linked=[f"-L{tmp_path}", "-lmiddle"])
        assert "libversioned.so has no V_2, which libmiddle.so needs" in found(path)["libraries"]

    def test_a_weak_version(self, compile_module, tmp_path):
        """Like the loader, the doctor accepts a library that lacks a version if the module marks the version weak."""
        for version in ("V_2", "V_1"):
            compile_versioned(tmp_path, version)
            if version == "V_2":
                path = compile_module(
                    "m",
                    "-Wl,-rpath,$ORIGIN",
                    declarations='extern "C" [[gnu::weak]] int versioned();',
                    statements="if (versioned) versioned();",
                    linked=[f"-L{tmp_path}", "-lversioned"],
                )
        assert "libversioned.so has no V_2" in found(path, run=False)["libraries"]  # the control
        data = bytearray(path.read_bytes())
        with open(path, "rb") as file:
            start = ELFFile(file).get_section_by_name(".gnu.version_r")["sh_offset"]
        entry = data.index(struct.pack("<I", ELFHashTable.elf_hash("V_2")), start)
        data[entry + 4] |= 2  # vna_flags: VER_FLG_WEAK
        path.write_bytes(data)
        elf.read.cache_clear()
        levels = all_found(path)
        assert levels[Level.PROBLEM] == {}
        assert "m can be imported" in levels[Level.OK]["import"]

    def test_another_python(self, compile_module):
        text = found(compile_module(file="m.cpython-39-x86_64-linux-gnu.so"))["Python"]
        assert "built for CPython 3.9; this is 3." in text
        assert "rebuild" in text

    def test_a_renamed_file(self, compile_module):
        text = found(compile_module("m", symbol="original"))["import"]
        assert "there is no PyInit_m; there is PyInit_original" in text
        assert f"restore the name original{SUFFIX}" in text

    def test_a_library_that_is_no_module(self, tmp_path):
        path = tmp_path / "m.so"
        run(["cc", "-shared", "-x", "c", os.devnull, "-o", path])
        assert "none at all" in found(path)["import"]

    def test_a_stable_module_for_newer_ones(self, compile_module):
        path = compile_module(file="m.abi3.so", declarations=STABLE.format("2.99, cp399"))
        wrong = found(path)
        assert set(wrong) == {"Python", "torch"}
        assert "stable, torch >= 2.99, abi3 cp399, compiled by GCC" in wrong["torch"]
        assert f", but torch {torch.__version__} is installed -> pip install 'torch>=2.99'; or" in wrong["torch"]
        python = f"{sys.version_info[0]}.{sys.version_info[1]}"
        assert wrong["Python"].startswith(
            f"built for CPython 3.99 and later; this is {python} -> with an older py_limited"
        )

    def test_another_kind_of_machine(self, compile_module):
        path = compile_module()
        data = bytearray(path.read_bytes())
        data[18:20] = (183).to_bytes(2, "little")  # e_machine: EM_AARCH64
        path.write_bytes(data)
        assert "for AArch64 with 64 bits, but this Python is for" in found(path)["machine"]

    def test_a_crash(self, compile_module):
        text = found(compile_module(statements="*(volatile int*)0 = 1;"))["import"]
        assert "the process was ended by SIGSEGV" in text

    def test_an_error_of_its_own(self, compile_module):
        path = compile_module(statements='PyErr_SetString(PyExc_OSError, "as it likes"); return nullptr;')
        assert "m cannot be imported: OSError: as it likes" in found(path)["import"]

    def test_an_import_without_end(self, compile_module, monkeypatch):
        monkeypatch.setattr(loader, "_PATIENCE", 1)
        path = compile_module(declarations="#include <unistd.h>", statements="sleep(60);")
        assert "m cannot be imported: the import did not finish within 1 seconds" in found(path)["import"]

    def test_a_second_openmp(self, compile_module, tmp_path):
        run(["cc", "-shared", "-x", "c", os.devnull, "-o", tmp_path / "libiomp5.so"])
        path = compile_module(
            "m", "-Wl,-rpath,$ORIGIN", statements='PyImport_ImportModule("torch");', linked=[f"-L{tmp_path}", "-liomp5"]
        )
        text = found(path, Level.WARNING)["OpenMP"]
        assert "2 runtimes are loaded" in text
        assert "libiomp5.so" in text
        assert "libiomp5.so" not in Path("/proc/self/maps").read_text()  # other tests look for a second runtime there

    def test_a_file_that_cannot_be_read(self):
        assert "cannot be read: Input/output error -> see: ls -l" in found(Path("/proc/self/mem"))["file"]

    @pytest.mark.parametrize("content", [b"", b"text"])
    def test_no_library(self, tmp_path, content):
        path = tmp_path / "m.so"
        path.write_bytes(content)
        text = found(path)["file"]
        assert "is not an ELF file" in text
        assert "name a compiled extension module" in text

    @pytest.mark.parametrize("suffix", [*SUFFIXES, ".pxd", ".h"])
    def test_a_source(self, tmp_path, suffix):
        path = tmp_path / f"m{suffix}"
        path.write_text("text")
        assert found(path)["file"].startswith(f"is a source, {suffix}, not a compiled module -> name a compiled")

    def test_a_program(self):
        for program in ("/bin/ls", sys.executable):
            assert found(Path(program)) == {
                "file": "is a program, not a Python module -> name a compiled extension module, such as "
                "package/module.cpython-311-x86_64-linux-gnu.so"
            }

    def test_an_object_file(self, tmp_path):
        run(["cc", "-c", "-x", "c", os.devnull, "-o", tmp_path / "m.so"])
        assert "is an object file, which is not linked yet" in found(tmp_path / "m.so")["file"]

    def test_a_module_that_ends_the_process(self, compile_module):
        """The doctor reports a module that ends the process while its library is initialised."""
        stop = 'struct Stop { Stop() { __builtin_printf("[1]\\n"); _exit(0); } } stop;'
        path = compile_module(declarations=f"#include <unistd.h>\n{stop}")
        assert "m cannot be imported: the process ended with status 0" in found(path)["import"]

    def test_a_library_that_ends_the_process(self, compile_module, tmp_path):
        source = tmp_path / "stop.c"
        source.write_text("__attribute__((constructor)) static void stop(void) { __builtin_trap(); }")
        run(["cc", "-shared", "-fPIC", source, "-o", tmp_path / "libstop.so"])
        path = compile_module("m", "-Wl,-rpath,$ORIGIN", linked=[f"-L{tmp_path}", "-lstop"])
        assert "m cannot be imported: the process was ended by SIG" in found(path)["import"]


@pytest.mark.long
@pytest.mark.extended
class TestCodeOfOthers:
    """The doctor runs a module and its libraries only to import the module, and not for longer than its patience."""

    @staticmethod
    def library(folder, statement, name="libother.so", *flags):
        """Link a library whose constructor runs `statement`."""
        source = folder / "other.c"
        source.write_text(
            "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
            f"__attribute__((constructor)) static void begin(void) {{ {statement} }}"
        )
        run(["cc", "-shared", "-fPIC", "-w", source, "-o", folder / name, *flags])
        return folder / name

    @pytest.mark.parametrize("run_it", [False, True])
    @pytest.mark.parametrize("by", ["path", "LD_LIBRARY_PATH", "RPATH", "through another"])
    def test_constructors(self, compile_module, tmp_path, monkeypatch, by, run_it):
        marker = tmp_path / "ran"
        write = f'fclose(fopen("{marker}", "w"));'
        if by == "path":  # `./libother.so` in a library that has no name, as in `cc m.c ./libother.so`
            monkeypatch.chdir(tmp_path)
            self.library(tmp_path, write)
            path = compile_module(folder=tmp_path / "sub", linked=["./libother.so"])
        else:
            self.library(tmp_path, write, "libother.so", "-Wl,-soname,libother.so")
            name = "other"
            if by == "through another":
                link = ["-Wl,--no-as-needed", f"-L{tmp_path}", "-lother"]
                self.library(tmp_path, "", "libmiddle.so", *link)
                name = "middle"
            rpath = ["-Wl,-rpath,$ORIGIN"] if by == "RPATH" else []
            path = compile_module("m", *rpath, linked=[f"-L{tmp_path}", f"-l{name}"])
            monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
        levels = all_found(path, run=run_it)
        assert levels[Level.PROBLEM] == {}
        assert ("linked to a path, ./libother.so" in levels[Level.WARNING].get("libraries", "")) == (by == "path")
        assert marker.exists() == run_it  # the control: it runs in the import

    @pytest.mark.parametrize("name", ["./libgone.so", "/no/such/libgone.so"])
    def test_a_path_that_is_not_there(self, compile_module, tmp_path, name):
        run(["cc", "-shared", "-x", "c", os.devnull, f"-Wl,-soname,{name}", "-o", tmp_path / "libgone.so"])
        text = found(compile_module(linked=[tmp_path / "libgone.so"]))["libraries"]
        assert f"{name} is not found -> link it by name" in text

    def test_libraries_for_another_machine(self, compile_module, tmp_path, monkeypatch):
        """Like the loader, the doctor passes over a library for another machine, and takes the next one."""
        right, wrong = tmp_path / "right", tmp_path / "wrong"
        for folder in (right, wrong):
            folder.mkdir()
            data = bytearray(self.library(folder, "").read_bytes())
            if folder == wrong:
                data[18:20] = (183).to_bytes(2, "little")  # e_machine: EM_AARCH64
            (folder / "libother.so").write_bytes(data)
        path = compile_module(linked=[f"-L{right}", "-lother"])
        monkeypatch.setenv("LD_LIBRARY_PATH", f"{wrong}:{right}")
        assert found(path) == {}
        monkeypatch.setenv("LD_LIBRARY_PATH", f"{wrong}")
        assert "libother.so is not found" in found(path)["libraries"]

    @pytest.mark.parametrize("by", ["LD_LIBRARY_PATH", "RPATH", "RUNPATH"])
    def test_the_current_folder(self, compile_module, tmp_path, monkeypatch, by):
        """An empty entry of a search path is the current folder. The import shows that the loader agrees."""
        self.library(tmp_path, "", "libother.so", "-Wl,-soname,libother.so")
        flags = {"RPATH": ["-Wl,--disable-new-dtags,-rpath,:/no/such"], "RUNPATH": ["-Wl,-rpath,:/no/such"]}.get(by, [])
        path = compile_module("m", *flags, folder=tmp_path / "sub", linked=[f"-L{tmp_path}", "-lother"])
        monkeypatch.setenv("LD_LIBRARY_PATH", ":/no/such" if by == "LD_LIBRARY_PATH" else "")
        monkeypatch.chdir(tmp_path)
        levels = all_found(path)
        assert levels[Level.PROBLEM] == {}
        assert "m can be imported" in levels[Level.OK]["import"]
        monkeypatch.chdir("/")
        assert "libother.so is not found" in found(path, run=False)["libraries"]

    def test_an_empty_search_path(self, compile_module, tmp_path, monkeypatch):
        """An empty variable has no entry."""
        self.library(tmp_path, "", "libother.so", "-Wl,-soname,libother.so")
        path = compile_module("m", folder=tmp_path / "sub", linked=[f"-L{tmp_path}", "-lother"])
        monkeypatch.setenv("LD_LIBRARY_PATH", "")
        monkeypatch.chdir(tmp_path)
        assert "libother.so is not found" in found(path, run=False)["libraries"]

    @pytest.mark.parametrize("by", ["LD_LIBRARY_PATH", "RPATH"])
    @pytest.mark.parametrize("token", ["$LIB", "${LIB}", "$PLATFORM", "${PLATFORM}", "$LIBRARY"])
    def test_tokens(self, compile_module, tmp_path, monkeypatch, token, by):
        """The doctor replaces the loader's tokens as the loader does, which the import shows. $LIBRARY is not one."""
        folder = tmp_path / elf._tokens().get(token.strip("${}"), token)
        assert token == "$LIBRARY" or folder.name != token
        folder.mkdir(parents=True)
        self.library(folder, "", "libother.so", "-Wl,-soname,libother.so")
        flags = [f"-Wl,-rpath,$ORIGIN/../{token}"] if by == "RPATH" else []
        path = compile_module("m", *flags, folder=tmp_path / "sub", linked=[f"-L{folder}", "-lother"])
        program = os.path.dirname(os.path.realpath("/proc/self/exe"))
        to_here = "$ORIGIN/" + os.path.relpath(tmp_path, program)
        monkeypatch.setenv("LD_LIBRARY_PATH", f"{to_here}/{token}" if by == "LD_LIBRARY_PATH" else "")
        levels = all_found(path)
        assert levels[Level.PROBLEM] == {}
        assert "m can be imported" in levels[Level.OK]["import"]

    def test_a_library_without_permission(self, compile_module, tmp_path, monkeypatch):
        """Like the loader, the doctor passes over a library that it may not read, and takes the next one."""
        right, wrong = tmp_path / "right", tmp_path / "wrong"
        for folder in (right, wrong):
            folder.mkdir()
            self.library(folder, "", "libother.so", "-Wl,-soname,libother.so")

        def read(path):  # root may read every file
            if path.parent == wrong:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return elf.read(path)

        monkeypatch.setattr(loader, "read", read)
        path = compile_module(linked=[f"-L{right}", "-lother"])
        monkeypatch.setenv("LD_LIBRARY_PATH", f"{wrong}:{right}")
        assert found(path, run=False) == {}
        monkeypatch.setenv("LD_LIBRARY_PATH", f"{wrong}")
        text = found(path, run=False)["libraries"]
        assert "libother.so cannot be loaded" in text
        assert os.strerror(errno.EACCES) in text

    @pytest.mark.parametrize("text", ["interop.doctor: {", "interop.doctor: 5", "5"])
    def test_what_a_module_prints(self, compile_module, text):
        """What a module prints, also after the import, is no part of the child process's report."""
        declarations = f'#include <stdio.h>\n[[gnu::destructor]] static void end() {{ puts("\\n{text}"); }}'
        levels = all_found(compile_module(declarations=declarations))
        assert levels[Level.PROBLEM] == {}
        assert "m can be imported" in levels[Level.OK]["import"]

    def test_an_incomplete_report(self, compile_module):
        """The module ends the process when Python opens the report, which then is empty."""
        text = "import sys, os; sys.addaudithook(lambda e, a: os._exit(0) if e == 'open' and a[1] == 'w' else None)"
        path = compile_module(statements=f'PyRun_SimpleString("{text}");')
        assert "m cannot be imported: the process ended with status 0" in found(path)["import"]

    def test_a_module_that_prints_without_end(self, compile_module, monkeypatch):
        """What an import prints, and thus the doctor's temporary file, has a maximum size."""
        monkeypatch.setattr(loader, "_FILE_LIMIT", 1 << 16)
        # 4 MiB here, because without the limit it would fill the disk.
        loop = 'for (int i = 0; i < 1 << 20; ++i) if (write(2, "end\\n", 4) < 0) _exit(7);'
        path = compile_module(declarations="#include <unistd.h>", statements=loop)
        assert "m cannot be imported: end" in found(path)["import"]

    def test_a_library_without_end(self, compile_module, tmp_path, monkeypatch):
        monkeypatch.setattr(loader, "_PATIENCE", 1)
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
        self.library(tmp_path, "sleep(600);")
        path = compile_module(linked=[f"-L{tmp_path}", "-lother"])
        assert "m cannot be imported: the import did not finish within 1 seconds" in found(path)["import"]

    def test_a_process_that_stays(self, compile_module, tmp_path):
        """The doctor does not wait for a process that the library starts, which has the same standard error."""
        left = tmp_path / "left"
        fork = f'int pid = fork(); if (!pid) sleep(600); fprintf(fopen("{left}", "w"), "%d", pid); fflush(NULL);'
        self.library(tmp_path, f"{fork} _exit(0);")
        path = compile_module("m", "-Wl,-rpath,$ORIGIN", linked=[f"-L{tmp_path}", "-lother"])
        assert "m cannot be imported: the process ended with status 0" in found(path)["import"]
        os.kill(int(left.read_text()), signal.SIGKILL)  # raises if the process has ended


# The strings that the first of two files contains.
STRINGS = """puts("module 'm' cannot load its compiled half"); puts("torch_2_1");"""


@pytest.fixture(scope="module")
def to_damage(tmp_path_factory):
    """A module with everything that the doctor reads: libraries, an RPATH, versions, constants."""
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "m.cpp").write_text(MODULE.format(name="m", declarations="", statements=STRINGS))
    path = folder / f"m{SUFFIX}"
    include = f"-I{sysconfig.get_path('include')}"
    link = ["-Wl,--no-as-needed,-rpath,$ORIGIN", f"-L{LIB}", "-lc10"]
    run(["c++", "-shared", "-fPIC", include, folder / "m.cpp", "-o", path, *link])
    return path


@pytest.mark.long
class TestDamagedFiles:
    """The doctor describes any file, however damaged, in a line of text."""

    def test_many_constants(self, tmp_path):
        """The first constant is used, and the others take no memory."""
        data = b"torch_1\0" * 500_000
        (tmp_path / "library").write_bytes(data)
        library = SimpleNamespace(path=tmp_path / "library", _constants=(0, len(data)))
        tracemalloc.start()
        try:
            assert elf.Library.constant(library, rb"(torch_\d)") == "torch_1"
            assert tracemalloc.get_traced_memory()[1] < 2 * len(data)
        finally:
            tracemalloc.stop()

    @staticmethod
    def look(path, content):
        path.write_bytes(content)
        elf.read.cache_clear()
        return examine_module(path, run=False)

    @pytest.mark.parametrize("share", [0.001, 0.01, 0.5, 0.9, 0.999])
    def test_cut_short(self, to_damage, tmp_path, share):
        data = to_damage.read_bytes()
        (finding,) = self.look(tmp_path / to_damage.name, data[: int(len(data) * share)])
        assert finding.level is Level.PROBLEM
        assert finding.subject == "file"
        assert finding.text.startswith("is cut short")
        assert "copy it here again; or rebuild it" in finding.fix

    def test_as_it_is(self, to_damage, tmp_path):
        """The intact file is not reported as damaged, so the other tests see real damage."""
        findings = self.look(tmp_path / to_damage.name, to_damage.read_bytes())
        assert [one.subject for one in findings if one.level is Level.PROBLEM] == ["files", "torch"]

    @settings(max_examples=150, deadline=None)
    @given(data=st.data())
    def test_any_damage(self, to_damage, data):
        whole = to_damage.read_bytes()
        sections = int.from_bytes(whole[40:48], "little")
        # The header and the two kinds of tables contain the offsets.
        places = st.one_of(
            st.integers(0, 63),
            st.integers(sections, len(whole) - 1),
            st.integers(64, 0x1000),
            st.integers(0, len(whole) - 1),
        )
        content = bytearray(whole)
        for place in data.draw(st.lists(places, min_size=1, max_size=30)):
            content[place] = data.draw(st.sampled_from([0, 1, 127, 128, 255]) | st.integers(0, 255))
        length = data.draw(st.just(len(whole)) | st.integers(0, len(whole)))
        folder = to_damage.parent / "other"
        folder.mkdir(exist_ok=True)
        for finding in self.look(folder / to_damage.name, bytes(content[:length])):
            assert isinstance(finding.text, str)

    @settings(max_examples=100)
    @given(st.binary(max_size=200))
    @example(b"\x02\x01\x01" + bytes(57))
    @example(b"\x01\x02\x01" + b"\xff" * 57)
    def test_any_header(self, to_damage, content):
        (finding,) = self.look(to_damage.parent / "header.so", b"\x7fELF" + content)
        assert finding.level is Level.PROBLEM

    @staticmethod
    def library(*parts, sections=()):
        """A library of the given sections (type, link, info, entry size, content); `sections` are headers alone."""
        headers, content = [bytes(64)], b""
        for kind, link, info, size, part in parts:
            place = 64 + len(content)
            headers.append(struct.pack("<II4QII2Q", 0, kind, 0, 0, place, len(part), link, info, 1, size))
            content += part
        headers += sections
        numbers = (3, 62, 1, 0, 0, 64 + len(content), 0, 64, 0, 0, 64, len(headers), 1)
        return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQI6H", *numbers) + content + b"".join(headers)

    @pytest.mark.parametrize(
        ("what", "text"),
        [
            ("symbols", "its symbol names are more than 16 times as long as their table"),
            ("one name", "its symbol names are more than 16 times as long as their table"),
            ("libraries", "its tables are larger than"),
            ("short libraries", "it names more than 1000 libraries"),
            ("folders", "it names more than 1000 folders"),
            ("versions", "its tables are larger than"),
            ("files of versions", "its tables are larger than"),
            ("offered versions", "its tables are larger than"),
            ("sections", "its tables are larger than"),
        ],
    )
    def test_names_without_end(self, tmp_path, what, text):
        """Up to 20,000 entries that share a name of up to 200 KB, in a file of less than 1.5 MB, take little memory."""
        short = what in ("short libraries", "folders")
        names = b"\0" + (b"x:" * 1500 if what == "folders" else b"x" * (20 if short else 200_000)) + b"\0"
        count = 20_000
        places = [1 + (number % 1000 if not short else 0) for number in range(count)]
        symbols = {"symbols": places, "one name": [1] * count}.get(what, [1])
        tags = {"libraries": places, "short libraries": [1] * 1001}.get(what, [])
        dynamic = [*((1, place) for place in tags), *([(15, 1)] if what == "folders" else []), (0, 0)]
        parts = [
            (3, 0, 0, 0, names),
            (11, 1, 1, 24, b"".join(struct.pack("<IBBHQQ", place, 0x10, 0, 1, 0, 0) for place in symbols)),
            (6, 1, 0, 16, b"".join(struct.pack("<2Q", *tag) for tag in dynamic)),
        ]
        if what == "versions":
            entries = b"".join(struct.pack("<IHHII", 0, 0, 0, place, 16) for place in places)
            parts.append((0x6FFFFFFE, 1, 1, 0, struct.pack("<HHIII", 1, count, 1, 16, 0) + entries))
        elif what == "files of versions":
            form = "<HHIIIIHHII"
            entries = [struct.pack(form, 1, 1, place, 16, 32, 0, 0, 0, 1, 0) for place in places]
            parts.append((0x6FFFFFFE, 1, count, 0, b"".join(entries)))
        elif what == "offered versions":
            entries = [struct.pack("<HHHHIIIII", 1, 0, 0, 1, 0, 20, 28, place, 0) for place in places]
            parts.append((0x6FFFFFFD, 1, count, 0, b"".join(entries)))
        more = [struct.pack("<II4QII2Q", 1, 3, 0, 0, 64, 200_000, 0, 0, 1, 0)] * (count if what == "sections" else 0)
        content = self.library(*parts, sections=more)
        tracemalloc.start()
        try:
            (finding,) = self.look(tmp_path / "m.so", content)
            assert tracemalloc.get_traced_memory()[1] < 64 << 20
        finally:
            tracemalloc.stop()
        assert len(content) < 1_500_000
        assert f"is damaged: {text}" in finding.text

    @pytest.mark.parametrize("kind", [1, 3, 6, 11])
    def test_a_hole(self, tmp_path, kind):
        """The doctor examines a sparse file of 100 GiB, which takes a few blocks of the disk."""
        size = 100 << 30
        header = struct.pack("<II4QII2Q", 0, kind, 0, 0, 4096, size - 4096, 1, 0, 1, 24)
        parts = [(3, 0, 0, 0, b"\0"), (11, 1, 1, 24, b""), (6, 1, 0, 16, bytes(16))]
        path = tmp_path / "m.so"
        path.write_bytes(self.library(*parts, sections=[header])[:4096])
        if kind != 1:  # change the header of the section that the doctor reads
            whole = bytearray(path.read_bytes())
            start = int.from_bytes(whole[40:48], "little") + 64 * (1 + [3, 11, 6].index(kind))
            struct.pack_into("<2Q", whole, start + 24, 4096, (size - 4096) // 24 * 24)
            path.write_bytes(whole)
        os.truncate(path, size)
        elf.read.cache_clear()
        findings = examine_module(path, run=False)
        if kind in (3, 11):  # of the others the doctor reads only the beginning
            assert "is larger than 134217728 bytes" in findings[0].text

    @settings(max_examples=60, deadline=None)
    @given(data=st.data())
    def test_any_counts(self, to_damage, data):
        """The doctor handles numbers of any size in the fields for counts, sizes and offsets."""
        whole = bytearray(to_damage.read_bytes())
        start = int.from_bytes(whole[40:48], "little")
        count = (len(whole) - start) // 64
        fields = st.tuples(st.integers(0, count - 1), st.sampled_from([0, 4, 24, 32, 40, 44, 56]))
        places = fields.map(lambda one: start + 64 * one[0] + one[1]) | st.integers(0x200, start - 8)
        numbers = st.sampled_from([0, 1, 7, 0xFFFF, 1 << 31, (1 << 32) - 1, len(whole) - 8]) | st.integers(0, 1 << 32)
        for place in data.draw(st.lists(places, min_size=1, max_size=6)):
            struct.pack_into("<I", whole, place, min(data.draw(numbers), (1 << 32) - 1))
        folder = to_damage.parent / "counts"
        folder.mkdir(exist_ok=True)
        for finding in self.look(folder / to_damage.name, bytes(whole)):
            assert isinstance(finding.text, str)

    def test_a_name_that_stands_for_gigabytes(self, compile_module):
        """A name is shown mangled if each of its parts is twice as long as the one before."""
        letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        symbol = "_Z1fSt4pairIiiE" + "".join(f"S_IS{letters[n]}_S{letters[n]}_E" for n in range(30))
        path = compile_module(declarations=f'void f() asm("{symbol}"); void g();', statements="f(); g();")
        text = found(path)["symbols"]
        assert symbol in text

    @pytest.mark.parametrize("what", ["versions", "libraries"])
    def test_tables_without_end(self, to_damage, tmp_path, what):
        """The doctor reports 4,294,967,295 entries that lead to themselves, and libraries up to the end of a file."""
        whole = bytearray(to_damage.read_bytes())
        with open(to_damage, "rb") as file:
            library = ELFFile(file)
            sections = {
                section["sh_type"]: (library["e_shoff"] + library["e_shentsize"] * number, section["sh_offset"])
                for number, section in enumerate(library.iter_sections())
            }
        if what == "versions":
            header, table = sections["SHT_GNU_verneed"]
            struct.pack_into("<I", whole, header + 44, 0xFFFFFFFF)  # sh_info
            struct.pack_into("<I", whole, table + 12, 0)  # vn_next
        else:
            header, _ = sections["SHT_DYNAMIC"]
            struct.pack_into("<2Q", whole, header + 24, len(whole), 1 << 24)  # sh_offset and sh_size
            whole += struct.pack("<2Q", 1, 1) * (1 << 20)
        (finding,) = self.look(tmp_path / to_damage.name, bytes(whole))
        assert "is damaged: its tables are larger than" in finding.text

    @pytest.mark.parametrize(
        ("kind", "place", "value", "text"),
        [
            (None, 16, 77, "its header has the type 77, but that of a library is ET_DYN"),
            ("SHT_DYNAMIC", 40, 0, ".dynamic has no string table"),
            ("SHT_STRTAB", 32, 1, "a name is outside its table"),
        ],
    )
    def test_what_is_damaged(self, to_damage, tmp_path, kind, place, value, text):
        """One field is damaged: of the file's header, or of the first section of a kind (sh_link, sh_size)."""
        whole = bytearray(to_damage.read_bytes())
        with open(to_damage, "rb") as file:
            library = ELFFile(file)
            kinds = [section["sh_type"] for section in library.iter_sections()]
            start = library["e_shoff"] + library["e_shentsize"] * kinds.index(kind) if kind else 0
        whole[start + place] = value
        (finding,) = self.look(tmp_path / to_damage.name, bytes(whole))
        assert finding.text.startswith("is damaged: ")
        assert text in finding.text

    def test_its_other_file(self, bootstrapped):
        entry, native = bootstrapped("m", NAME)
        native.write_bytes(native.read_bytes()[:5000])
        elf.read.cache_clear()
        assert f"{native.name}, the other file of this module, is cut short" in found(entry)["file"]

    def test_a_library_that_it_needs(self, compile_module, tmp_path):
        run(["cc", "-shared", "-x", "c", os.devnull, "-o", tmp_path / "libother.so"])
        path = compile_module("m", "-Wl,-rpath,$ORIGIN", linked=[f"-L{tmp_path}", "-lother"])
        (tmp_path / "libother.so").write_text("INPUT(libc.so.6)")
        text = found(path)["libraries"]
        assert f"libother.so cannot be loaded ({tmp_path}/libother.so is not an ELF file)" in text
        assert "reinstall its package" in text


class TestModulesOfLoad:
    """Modules that `interop.load` makes. They are in its cache, and also have two files."""

    @pytest.fixture
    def files(self, tmp_path, jit_cache):
        module = interop.load_inline("cimport torch\ndef f(torch.Tensor x not None): return x", name="doctored")
        entry = Path(module.__file__)
        folder = shutil.copytree(entry.parent, tmp_path / "copy")
        return folder / entry.name, folder / "native.so"

    def test_both_are_looked_at(self, files):
        entry, native = files
        findings = examine_module(native)
        assert {one.level for one in findings} == {Level.OK}
        text = {one.subject: one.text for one in findings}
        assert text["files"] == f"two, made by interop.load: Python imports {entry.name}, the code is in native.so"
        assert text["torch"].startswith(f"built for torch {torch.__version__.rpartition('.')[0]}, compiled by")
        assert "libtorch_cpu.so" in text["libraries"]
        assert text["import"].startswith("doctored can be imported")
        assert examine_module(entry, run=False) == examine_module(native, run=False)

    @pytest.mark.parametrize("gone", [0, 1])
    def test_one_of_them(self, files, gone):
        files[gone].unlink()
        text = found(files[1 - gone])["files"]
        assert files[gone].name in text
        assert "is not beside it" in text
        assert "call interop.load again" in text

    def test_for_another_torch(self, files):
        entry, _ = files
        entry.write_bytes(entry.read_bytes().replace(f"\0{NAME}\0".encode(), b"\0torch_2_99"[: len(NAME) + 1] + b"\0"))
        text = found(entry)["torch"]
        assert "built for torch 2.99" in text
        assert "call interop.load again" in text
        assert "pip install" not in text

    @needs_stable
    def test_for_many_releases(self, tmp_path, jit_cache):
        """A stable module is one file, which notes its oldest torch."""
        module = interop.load_inline("cimport torch\ndef f(torch.Tensor x not None): return x", stable="2.11")
        made = Path(module.__file__)
        folder = shutil.copytree(made.parent, tmp_path / "copy")
        entry = folder / made.name
        assert not any(one.fix for one in examine_module(entry, run=False))
        entry.write_bytes(entry.read_bytes().replace(b"torch>=2.11", b"torch>=2.99"))
        (torch_finding,) = [one for one in examine_module(entry, run=False) if one.subject == "torch"]
        text = f"{torch_finding.text} {torch_finding.fix}"
        assert "stable, torch >= 2.99" in text
        assert "call interop.load again" in text
        assert "--force-reinstall" not in text


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

    def test_nothing_to_build_with(self, monkeypatch, tmp_path):
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(sys, "path", [str(tmp_path)])
        monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
        headers, *packages = self.findings(environment.python)
        assert f"without {tmp_path}/Python.h, so nothing can be compiled" in headers
        assert f"apt-get install python{sys.version_info[0]}.{sys.version_info[1]}-dev" in headers
        assert [text.partition(":")[0] for text in packages] == ["Cython", "numpy", "setuptools"]
        assert all("is not installed -> pip install" in text for text in packages)
        (ninja,) = self.findings(environment.tools, Level.WARNING)
        assert "is not installed, so files are compiled one after another" in ninja

    def test_the_current_folder_is_gone(self, monkeypatch, tmp_path):
        (tmp_path / "gone").mkdir()
        monkeypatch.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        assert environment.SECTIONS["This folder"]() == []

    def test_a_compiler_that_is_not_gcc(self, monkeypatch, tmp_path):
        other = tmp_path / "other"
        other.write_text('#!/bin/sh\nexec c++ -D__clang__=1 "$@"\n')
        other.chmod(0o755)
        monkeypatch.setenv("CXX", str(other))
        (text,) = (text for text in self.findings(environment.tools, Level.OK) if text.startswith("compiler"))
        assert "with it prange uses one thread" in text

    def test_an_old_numpy(self, monkeypatch, tmp_path):
        metadata = tmp_path / "numpy-1.26.4.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 1.26.4\n")
        monkeypatch.syspath_prepend(tmp_path)
        (text,) = self.findings(environment.python)
        assert "numpy: 1.26.4, but 2 or newer is required -> pip install 'numpy>=2'" in text

    @pytest.mark.skipif(FREE_THREADED, reason="this Python can run without a GIL")
    def test_a_python_that_always_has_a_gil(self):
        assert environment.gil() == []
        assert "free-threaded" not in environment.python()[0].text

    @pytest.mark.skipif(not FREE_THREADED, reason="this Python has a GIL, which nothing turns on")
    @pytest.mark.parametrize(
        ("asked", "before", "level", "says"),
        [
            (None, "", "OK", "it is off"),
            (None, "interop.load_inline('def f(): pass', free_threaded=True)", "OK", "it is off"),
            (None, "interop.load_inline('def f(): pass')", "WARNING", "that does not declare"),
            ("0", "interop.load_inline('def f(): pass')", "OK", "it is off"),
            ("1", "", "OK", "as PYTHON_GIL=1 or -X gil=1 asks for"),
        ],
    )
    def test_a_python_that_can_run_without_a_gil(self, jit_cache, asked, before, level, says):
        code = f"""
import interop
{before}
from interop.doctor import environment
*_, finding = environment.SECTIONS["Loaded"]()
print(finding.level.name, finding.subject, finding.text)
print(environment.python()[0].text)
"""
        variables = with_own_gil(INTEROP_CACHE_DIR=str(jit_cache)) | ({"PYTHON_GIL": asked} if asked else {})
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=variables, timeout=600)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"{level} GIL ")
        assert says in done.stdout
        assert ", free-threaded, " in done.stdout

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
    """Runs the doctor in a new process. Returns its exit status, stdout and stderr."""
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))}
    command = [sys.executable, "-P", "-m", "interop", "doctor", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=300, **options)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def copied(tmp_path):
    """A folder with a copy of this package without its compiled files, as in a checkout."""
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "*.cpp")
    shutil.copytree(PACKAGE, tmp_path / "site" / "interop", ignore=ignored)
    for name in ("pxd", "csrc"):
        (tmp_path / "site" / name).symlink_to(TESTS.parent / name)
    return tmp_path / "site"


def summary(problems, warnings):
    """The last line of a page with these findings, and a possible warning about this machine's CUDA."""
    warnings += environment._cuda(torch.version.cuda).level is Level.WARNING
    return f"{_count(problems, 'problem')}, {_count(warnings, 'warning')}\n"


@pytest.mark.long
@pytest.mark.extended
class TestCommand:
    def test_all_is_well(self, bootstrapped):
        path, _ = bootstrapped("m", NAME)
        status, out, error = doctor(path)
        assert (status, error) == (0, "")
        assert out.endswith("\n" + summary(0, 0))
        assert torch.__version__ in out
        assert str(path) in out

    def test_a_broken_module_is_status_1(self, tmp_path):
        (tmp_path / "m.so").touch()
        status, out, error = doctor(tmp_path / "m.so")
        assert (status, error) == (1, "")
        assert "problem  file  is not an ELF file" in out
        assert "fix: name a compiled extension module" in out
        assert out.endswith("\n" + summary(1, 0))

    def test_where_import_interop_fails(self, copied):
        """The doctor reports that this package was built for another torch, although `import interop` fails."""
        info = copied / "interop" / "_build_info.py"
        info.write_text(info.read_text().replace(NAME, "torch_2_99").replace(torch.__version__, "2.99.0"))
        failed = subprocess.run(
            [sys.executable, "-P", "-c", "import interop"],
            env=os.environ | {"PYTHONPATH": str(copied)},
            capture_output=True,
            text=True,
        )
        assert "ImportError: torch-interop was built for torch 2.99.0" in failed.stderr
        status, out, error = doctor(path=[copied], cwd=copied.parent)
        assert (status, error) == (1, "")
        assert f"built for torch 2.99.0, but torch {torch.__version__} is running" in out
        assert "fix: pip install --no-build-isolation --force-reinstall" in out
        assert out.endswith("\n" + summary(1, 0))

    def test_in_a_checkout_that_is_not_built(self, copied):
        (copied / "interop" / "_build_info.py").unlink()
        status, out, error = doctor(path=[copied], cwd=copied.parent)
        assert (status, error) == (1, "")
        assert "is the source folder, without its compiled half" in out
        assert "fix: leave that folder, or build it: pip install --no-build-isolation -e .\n" in out

    def test_without_torch(self, tmp_path):
        (tmp_path / "torch.py").write_text("raise ImportError('no torch here')\n")
        status, out, error = doctor(path=[tmp_path])
        assert (status, error) == (1, "")
        assert "problem  torch  is not installed" in out
        assert "fix: pip install torch" in out

    def test_modules_without_torch(self, bootstrapped, compile_module, tmp_path):
        (tmp_path / "torch.py").write_text("raise ImportError('no torch here')\n")
        built, _ = bootstrapped("built", NAME)
        linked = compile_module("linked", linked=["-lc10"])
        status, out, error = doctor("--no-import", built, linked, path=[tmp_path])
        assert (status, error) == (1, "")
        assert re.search(r"problem  torch .* but torch is not installed\n +fix: pip install torch\n", out)
        assert re.search(r"problem  libraries  libc10.so is not found\n +fix: pip install torch\n", out)

    def test_another_kind_of_torch(self, tmp_path):
        """The doctor reports a torch that is old, has the ABI from before C++11, and lacks the search for nvcc."""
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "version.py").write_text("__version__ = '2.9.1'\ncuda = '99.0'\n")
        (tmp_path / "torch" / "__init__.py").write_text(
            "from torch.version import __version__\nfrom torch import version\n"
            "def compiled_with_cxx11_abi(): return False\n"
        )
        status, out, error = doctor(path=[tmp_path])
        assert (status, error) == (1, "")
        too_old = r"problem  torch +2.9.1 is too old: 2.10 or newer is required\n +fix: pip install 'torch>=2.10'\n"
        assert re.search(too_old, out)
        assert re.search(r"warning  C\+\+ ABI +torch uses the ABI from before C\+\+11", out)
        assert re.search(
            r"warning  CUDA +the search for nvcc failed: ModuleNotFoundError: .*\n +fix: see the other lines", out
        )

    def test_a_torch_that_cannot_be_imported(self, tmp_path):
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "__init__.py").write_text("raise OSError('libcudart.so.12: cannot open')\n")
        (tmp_path / "torch" / "version.py").write_text("__version__ = '2.13.0'\ncuda = None\n")
        status, out, error = doctor(path=[tmp_path])
        assert (status, error) == (1, "")
        assert "cannot be imported: OSError: libcudart.so.12" in out

    def test_without_pyelftools(self, tmp_path):
        (tmp_path / "elftools").mkdir()
        (tmp_path / "elftools" / "__init__.py").write_text("raise ModuleNotFoundError('it is not there')\n")
        (tmp_path / "m.so").touch()
        status, out, error = doctor(tmp_path / "m.so", path=[tmp_path])
        assert status == 1
        assert torch.__version__ in out
        assert (
            error
            == "error: the doctor reads modules with pyelftools, but it is not there. Run: pip install pyelftools\n"
        )

    def test_a_module_that_wants_torch_first_is_status_0(self, compile_module):
        status, out, error = doctor(compile_module(linked=["-lc10"]))
        assert (status, error) == (0, "")
        assert out.endswith("\n" + summary(0, 1))

    def test_files_that_hide_packages(self, tmp_path):
        """The doctor names files that hide packages, and the rest of the page is still right."""
        for name in ("cython", "numpy", "random", "torch"):
            (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong file')\n")
        (tmp_path / "setuptools").mkdir()  # hides nothing
        done = subprocess.run(
            [sys.executable, "-m", "interop", "doctor"], cwd=tmp_path, capture_output=True, text=True, timeout=300
        )
        assert (done.returncode, done.stderr) == (1, "")
        for name in ("cython", "numpy", "torch"):
            assert f"a file {name}.py in the folder {tmp_path} hides a package" in done.stdout
        assert f"rename {tmp_path / 'torch.py'}" in done.stdout
        assert re.search(r"warning +random ", done.stdout)
        assert re.search(rf"ok +torch +{re.escape(torch.__version__)}, {re.escape(str(LIB.parent))}", done.stdout)
        assert done.stdout.endswith("\n" + summary(3, 1))

    def test_where_packages_are_installed(self):
        """Files in the current folder hide nothing if that is the folder of the installed packages."""
        done = subprocess.run(
            [sys.executable, "-m", "interop", "doctor"], cwd=LIB.parents[1], capture_output=True, text=True, timeout=300
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "hides" not in done.stdout

    @pytest.mark.parametrize("cmake", [True, False])
    def test_in_a_project(self, tmp_path, cmake, monkeypatch):
        """The doctor names --no-build-isolation, because pip's error without it names torch-interop, not the cause."""
        write_project("cells", tmp_path, cmake=cmake)
        monkeypatch.chdir(tmp_path / "cells")
        (finding,) = environment.SECTIONS["This folder"]()
        assert finding.level is Level.OK
        assert "pip install --no-build-isolation ." in finding.text
        for text in (
            "",
            "[build-system]\n",
            "[build-system]\nrequires = ['torch']\n",
            "[",
            "[build-system]\nrequires = 1\n",
        ):
            Path("pyproject.toml").write_text(text)
            assert environment.SECTIONS["This folder"]() == []

    def test_names_that_cannot_be_printed(self, tmp_path):
        path = os.fsencode(tmp_path) + b"/\xff\n.so"
        Path(os.fsdecode(path)).touch()
        command = [sys.executable, "-P", "-m", "interop", "doctor", path]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert (done.returncode, done.stderr) == (1, "")
        assert f"\n{tmp_path}/\\udcff\\n.so\n" in done.stdout

    @pytest.mark.parametrize(("name", "kind"), [("nothing.so", "not a file"), ("", "a folder")])
    def test_wrong_arguments(self, tmp_path, capsys, name, kind):
        assert command_line.main(["doctor", str(tmp_path / name)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: MODULE.so must be a compiled extension module, but ")
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
        """On a terminal, rich prints the same words as a table."""
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
