"""The inputs of a build beyond its sources: if one of them changes, the module is built again."""

import os
import subprocess
import sys
import time

import pytest

import interop
from interop.jit import BuildError, build, cache_key, importing, precompiled
from interop.jit.compiler import folders_in, named_files
from interop.jit.manifest import is_fixed
from interop.paths import get_pxd_dir

pytestmark = [pytest.mark.usefixtures("jit_cache"), pytest.mark.extended]


@pytest.fixture
def builds(monkeypatch):
    """Loads a module as if this process had not loaded it before; returns it and the number of builds so far."""
    built = []
    original = build.build

    def counting(target, *arguments):
        built.append(target.name)
        return original(target, *arguments)

    monkeypatch.setattr(build, "build", counting)

    def load(*arguments, **options):
        monkeypatch.setattr(importing, "_imports", {})
        module = interop.load(*arguments, **options)
        return module, len(built)

    return load


@pytest.fixture
def without_precompiled_header(monkeypatch):
    """For tests with flags of their own: precompiling headers for one test takes longer than its compilations."""
    monkeypatch.setattr(precompiled, "is_gcc", lambda: False)


@pytest.fixture
def folders(tmp_path):
    """Two folders; the first is searched first."""
    found = [tmp_path / "first", tmp_path / "second"]
    for folder in found:
        folder.mkdir()
    return found


def write_library(folder, value, kind, name="inputs"):
    """A library with a function, static or shared."""
    (folder / "value.c").write_text(f"int value(void) {{ return {value}; }}\n")
    if kind == "static":
        subprocess.run(["cc", "-fPIC", "-c", "value.c", "-o", "value.o"], cwd=folder, check=True)
        subprocess.run(["ar", "rcs", f"lib{name}.a", "value.o"], cwd=folder, check=True)
    else:
        subprocess.run(["cc", "-fPIC", "-shared", "value.c", "-o", f"lib{name}.so"], cwd=folder, check=True)


def test_a_date_in_the_future(tmp_path, builds):
    """A source from an archive of a machine whose clock is ahead is built once."""
    path = tmp_path / "of_tomorrow.pyx"
    path.write_text("x = 1\n")
    tomorrow = time.time() + 86400
    os.utime(path, (tomorrow, tomorrow))
    assert builds(path)[1] == builds(path)[1] == 1


class TestShadows:
    """A new file that comes earlier in a search path than the one that was read."""

    @pytest.mark.parametrize("name", ["shadowed", "deep.shadowed"])
    def test_a_pxd(self, tmp_path, folders, builds, name):
        path = tmp_path / f"shadowing_pxd_{len(name)}.pyx"
        path.write_text(f"from {name} cimport value\ndef f(): return value()\n")

        def write(folder, number):
            declared = folder / f"{name.replace('.', '/')}.pxd"
            declared.parent.mkdir(exist_ok=True)
            (declared.parent / "__init__.pxd").touch()
            declared.write_text(f"cdef inline int value(): return {number}\n")

        write(folders[1], 2)
        assert builds(path, include_dirs=folders)[0].f() == 2
        assert builds(path, include_dirs=folders)[1] == 1
        write(folders[0], 3)
        assert builds(path, include_dirs=folders)[0].f() == 3

    def test_a_pxd_on_the_path(self, tmp_path, folders, builds, monkeypatch):
        """Another PYTHONPATH may find another file; entries without such a file do not matter."""
        (tmp_path / "source").mkdir()
        path = tmp_path / "source" / "declared_on_path.pyx"
        path.write_text("from declared_somewhere cimport value\ndef f(): return value()\n")
        for number, folder in enumerate(folders):
            (folder / "declared_somewhere.pxd").write_text(f"cdef inline int value(): return {number}\n")
        monkeypatch.syspath_prepend(folders[1])
        assert builds(path)[0].f() == 1
        monkeypatch.syspath_prepend(tmp_path / "source")
        assert builds(path)[1] == 1
        monkeypatch.syspath_prepend(folders[0])
        assert builds(path)[0].f() == 0
        monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(folders[0])])
        module, count = builds(path)
        assert (module.f(), count) == (1, 2)

    def test_declarations_of_cython(self, tmp_path, builds):
        """A file beside the source is found before Cython's own."""
        path = tmp_path / "shadowing_cython.pyx"
        path.write_text("from libc.math cimport floor\ndef f(): return floor(2.5)\n")
        assert builds(path)[0].f() == 2
        assert builds(path)[1] == 1
        (tmp_path / "libc").mkdir()
        (tmp_path / "libc" / "__init__.pxd").touch()
        (tmp_path / "libc" / "math.pxd").write_text("cdef inline double floor(double x): return 7\n")
        assert builds(path)[0].f() == 7

    @pytest.mark.parametrize("source", ["pyx", "cpp"])
    def test_a_header(self, tmp_path, folders, builds, source):
        """A header of the .pyx file, and of C++ beside it, whose object is cached separately."""
        path = tmp_path / f"shadowing_header_{source}.pyx"
        declared = "shadowed.h" if source == "pyx" else "value.h"
        path.write_text(f'cdef extern from "{declared}":\n    int value()\ndef f(): return value()\n')
        (tmp_path / "value.h").write_text("int value();\n")
        (tmp_path / "value.cpp").write_text("#include <deep/shadowed.h>\nint value() { return number(); }\n")
        for number, folder in ((3, folders[0]), (2, folders[1])):
            for name, function in (("shadowed.h", "value"), ("deep/shadowed.h", "number")):
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(f"inline int {function}() {{ return {number}; }}\n")
        hidden = folders[0].rename(tmp_path / "hidden")
        sources = [path] if source == "pyx" else [path, tmp_path / "value.cpp"]
        load = lambda: builds(path.stem, sources, include_dirs=folders)  # noqa: E731
        assert load()[0].f() == 2
        assert load()[1] == 1
        hidden.rename(folders[0])
        assert load()[0].f() == 3

    @pytest.mark.usefixtures("without_precompiled_header")
    @pytest.mark.parametrize("how", ["flags", "CPATH"])
    def test_a_header_in_folders_of_the_compiler(self, tmp_path, folders, builds, monkeypatch, how):
        path = tmp_path / f"shadowing_in_{how}.pyx"
        path.write_text(
            'cdef extern from "value.h":\n    int value()\n'
            'cdef extern from "header.h":\n    int header()\ndef f(): return value(), header()\n'
        )
        (tmp_path / "value.h").write_text("int value();\n")
        (tmp_path / "value.cpp").write_text('#include "number.h"\nint value() { return number(); }\n')
        monkeypatch.chdir(tmp_path)
        flags = ["-Ifirst", "-isystem", "second"] if how == "flags" else []
        if how == "CPATH":
            monkeypatch.setenv("CPATH", "first:second")

        def write(folder, name, number):
            (folder / f"{name}.h").write_text(f"inline int {name}() {{ return {number}; }}\n")
            return builds(path.stem, [path, tmp_path / "value.cpp"], extra_compile_args=flags)[0].f()

        (folders[1] / "number.h").write_text("inline int number() { return 1; }\n")
        assert write(folders[1], "header", 2) == (1, 2)
        assert write(folders[0], "number", 3) == (3, 2)
        assert write(folders[0], "header", 4) == (3, 4)

    def test_force_takes_no_object_of_before(self, tmp_path, builds):
        """force=True compiles objects again, such as one that depends on `__has_include`."""
        path = tmp_path / "forced_anew.pyx"
        path.write_text('cdef extern from *:\n    """int value();"""\n    int value()\ndef f(): return value()\n')
        (tmp_path / "value.cpp").write_text(
            '#if __has_include("asked.h")\nint value() { return 3; }\n#else\nint value() { return 2; }\n#endif\n'
        )
        sources = [path, tmp_path / "value.cpp"]
        assert builds("forced_anew", sources)[0].f() == 2
        (tmp_path / "asked.h").touch()
        assert builds("forced_anew", sources, force=True)[0].f() == 3


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        (["-Ia", "-I", "b"], ["a", "b"]),
        (["-isystem", "a", "-iquoteb", "-idirafter", "c"], ["a", "b", "c"]),
        (["-O2", "-DI", "-I"], [""]),
    ],
)
def test_folders_in_flags(monkeypatch, flags, found):
    monkeypatch.delenv("CPATH", raising=False)
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", "d:")
    assert folders_in(flags) == [*found, "d", "."]


@pytest.mark.parametrize("flag", ["-specs={}", "-Wl,--version-script={}", "-Wl,-T,{},--no-undefined"])
def test_files_in_flags(tmp_path, flag):
    (tmp_path / "file").touch()
    assert named_files(["-O2", "-shared", flag.format(tmp_path / "file")]) == [str(tmp_path / "file")]


def test_python_packages_of_the_system_are_upgraded_by_themselves():
    packages = "/usr/lib/python3/dist-packages/numpy", "/usr/lib/python3.13/site-packages/numpy"
    assert not any(is_fixed(f"{folder}/numpy.pxd") for folder in packages)
    assert all(
        map(is_fixed, ("/usr/include/stdio.h", "/usr/lib/gcc/x/include/stddef.h", f"{get_pxd_dir()}/torch/x.pxd"))
    )


@pytest.mark.parametrize(("compiler", "native"), [("g++ -march=native", True), ("g++", False), ("", False)])
def test_a_processor_in_the_compilers_command(monkeypatch, compiler, native):
    monkeypatch.setenv("CXX", compiler)
    assert cache_key.is_native(["-O2"]) == native
    assert cache_key.is_native(["-O2", "-mtune=native"])


class TestLibraries:
    SOURCE = 'cdef extern from *:\n    """extern "C" int value(void);"""\n    int value()\ndef f(): return value()\n'

    @pytest.mark.parametrize("how", ["library", "path"])
    def test_a_static_one(self, tmp_path, builds, how):
        write_library(tmp_path, 2, "static")
        path = tmp_path / f"linking_{how}.pyx"
        path.write_text(self.SOURCE)
        options = {
            "library": {"libraries": ["inputs"], "library_dirs": [tmp_path]},
            "path": {"extra_link_args": [str(tmp_path / "libinputs.a")]},
        }[how]
        assert builds(path, **options)[0].f() == 2
        assert builds(path, **options)[1] == 1
        write_library(tmp_path, 3, "static")
        assert builds(path, **options)[0].f() == 3

    def test_objects_in_lines_for_distutils(self, tmp_path, builds):
        write_library(tmp_path, 2, "static")
        path = tmp_path / "linking_object.pyx"
        path.write_text("# distutils: extra_objects=value.o\n" + self.SOURCE)
        assert builds(path)[0].f() == 2
        write_library(tmp_path, 3, "static")
        assert builds(path)[0].f() == 3

    def test_a_script_for_the_linker(self, tmp_path, builds):
        """No linker lists it among the files that it reads."""
        path = tmp_path / "with_script.pyx"
        path.write_text("x = 1\n")
        script = tmp_path / "exports.map"
        script.write_text("{ global: PyInit_*; local: *; };\n")
        options = {"extra_link_args": [f"-Wl,--version-script={script}"]}
        assert builds(path, **options)[1] == builds(path, **options)[1] == 1
        script.write_text("{ global: PyInit_*; other; local: *; };\n")
        assert builds(path, **options)[1] == 2

    def test_one_that_is_found_before_another(self, tmp_path, folders, builds):
        write_library(folders[1], 2, "static", "ordered")
        path = tmp_path / "linking_ordered.pyx"
        path.write_text(self.SOURCE)
        options = {"libraries": ["ordered"], "library_dirs": folders}
        assert builds(path, **options)[0].f() == 2
        write_library(folders[0], 3, "static", "ordered")
        assert builds(path, **options)[0].f() == 3

    def test_a_shared_one_is_found_again(self, tmp_path):
        """The import finds it where the linker found it."""
        folder = tmp_path / "with, comma"
        folder.mkdir()
        write_library(folder, 2, "shared", "found_again")
        (tmp_path / "linking_shared.pyx").write_text(self.SOURCE)
        module = interop.load(tmp_path / "linking_shared.pyx", libraries=["found_again"], library_dirs=[folder])
        assert module.f() == 2

    def test_a_shared_one_that_is_not_found(self, tmp_path):
        write_library(tmp_path, 2, "shared", "not_found_again")
        flags = [f"-L{tmp_path}", "-lnot_found_again"]
        (tmp_path / "linking_lost.pyx").write_text(self.SOURCE)
        for _ in range(2):
            with pytest.raises(
                BuildError, match=r"its library libnot_found_again\.so was not found at import; .* in library_dirs"
            ) as raised:
                interop.load(tmp_path / "linking_lost.pyx", extra_link_args=flags)
            assert "its project" not in str(raised.value)

    def test_what_a_body_raises_of_another_module(self):
        """The error is not attributed to the module's own libraries."""
        message = "libGL.so.1: cannot open shared object file: No such file or directory"
        with pytest.raises(ImportError, match=r"^libGL"):
            interop.load_inline(f"raise ImportError('{message}')\n", name="failing_with_a_library")


class TestEnvironment:
    @pytest.mark.usefixtures("without_precompiled_header")
    def test_the_processor(self, tmp_path, builds, monkeypatch):
        """With -march=native, another processor causes a new build, as on another machine with the same home."""
        path = tmp_path / "on_processor.pyx"
        path.write_text("# distutils: extra_compile_args=-march=native\nx = 1\n")
        plain = tmp_path / "on_any_processor.pyx"
        plain.write_text("x = 1\n")
        assert builds(path)[1] == builds(path)[1] == 1
        assert builds(plain)[1] == 2
        monkeypatch.setitem(cache_key._STATES, cache_key.CPU, lambda: ["another"])
        assert builds(path)[1] == 3
        assert builds(plain)[1] == 3

    @pytest.mark.usefixtures("without_precompiled_header")
    def test_cuda(self, tmp_path, builds, monkeypatch, toolkit):
        monkeypatch.setenv("CUDA_HOME", str(toolkit.home))
        monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
        path = tmp_path / "with_nvcc.pyx"
        path.write_text(
            'cdef extern from *:\n    """extern "C" int number();"""\n    int number()\ndef f(): return number()\n'
        )
        kernel = tmp_path / "with_nvcc.cu"
        kernel.write_text('#include <number.h>\nextern "C" int number() { return NUMBER; }\n')
        folders = [tmp_path / "first", tmp_path / "second"]
        folders[1].mkdir()
        (folders[1] / "number.h").write_text("#ifndef NUMBER\n#define NUMBER 2\n#endif\n")
        load = lambda: builds("with_nvcc", [path, kernel], include_dirs=folders)  # noqa: E731
        assert load()[0].f() == 2
        assert load()[1] == 1
        monkeypatch.setenv("NVCC_APPEND_FLAGS", "-DNUMBER=3")
        assert load()[0].f() == 3
        monkeypatch.delenv("NVCC_APPEND_FLAGS")
        folders[0].mkdir()
        (folders[0] / "number.h").write_text("#define NUMBER 4\n")
        assert load()[0].f() == 4
        nvcc = tmp_path / "cuda" / "bin" / "nvcc"
        nvcc.parent.mkdir(parents=True)
        nvcc.write_text(f'#!/bin/sh\nexec {toolkit.nvcc} "$@" -DNUMBER=5 -I{tmp_path}/third\n')
        nvcc.chmod(0o755)
        (tmp_path / "third").mkdir()
        monkeypatch.delenv("CUDA_HOME")
        monkeypatch.setenv("PATH", f"{nvcc.parent}{os.pathsep}{os.environ['PATH']}")
        assert load()[1] == 4
