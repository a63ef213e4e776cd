"""The build helpers: what they add to an extension, and which arguments they reject."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import setuptools
import setuptools.errors
import torch
from conftest import TESTS, load_script, run
from setuptools import Distribution
from setuptools.command.build_ext import build_ext

import interop
from interop import _core
from interop.build import DIRECTIVES, BuildExtension, Extension, TranslationError, cythonize, openmp_flags
from interop.build import build_ext as build_ext_module

USES_NUMBER = """
cimport torch

cdef extern from *:
    int NUMBER

def number():
    return NUMBER
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty folder that is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_setup(project, module, name="project", build="BuildExtension", **arguments):
    """Writes the setup.py of a project with one extension; `module` is the text of its arguments."""
    listed = "".join(f", {key}={value!r}" for key, value in arguments.items())
    (project / "setup.py").write_text(
        "from setuptools import setup\n"
        "from interop.build import BuildExtension, Extension\n"
        f"setup(name={name!r}, ext_modules=[Extension({module})], cmdclass={{'build_ext': {build}}}{listed})\n"
    )


def finalized(*extensions):
    """The extensions that setuptools builds for these."""
    command = BuildExtension(Distribution({"name": "project", "ext_modules": list(extensions)}))
    command.finalize_options()
    return command.extensions


class TestExtension:
    def test_flags_and_folders(self, monkeypatch):
        monkeypatch.delenv("CFLAGS", raising=False)
        extension = Extension("package.module", ["module.pyx"], include_dirs=["mine"], libraries=["z"])
        assert extension.extra_compile_args == ["-std=c++20", *openmp_flags(), "-O2"]
        assert interop.get_include() in extension.include_dirs
        assert "mine" in extension.include_dirs
        assert {"z", "c10", "torch_cpu", "torch_python"} <= set(extension.libraries)
        assert extension.language == "c++"

    def test_flags_of_the_user_come_last(self, monkeypatch):
        monkeypatch.delenv("CFLAGS", raising=False)
        assert Extension("m", ["m.pyx"], extra_compile_args=["-O3"]).extra_compile_args[-1] == "-O3"
        both = Extension("m", ["m.pyx"], extra_compile_args={"cxx": ["-O3"], "nvcc": ["-lineinfo"]}).extra_compile_args
        assert both == {"cxx": ["-std=c++20", *openmp_flags(), "-O2", "-O3"], "nvcc": ["-lineinfo"]}

    def test_an_optimisation_level_in_cflags_wins(self, monkeypatch):
        monkeypatch.setenv("CFLAGS", "-g -O1")
        assert "-O2" not in Extension("m", ["m.pyx"]).extra_compile_args

    @pytest.mark.parametrize("name", ["", "my-module", "a..b", "1a", None, 3, "a b", "módulo", "package.__init__"])
    def test_names_that_are_none(self, name):
        with pytest.raises(
            ValueError,
            match=r"name must be a module's dotted name in ASCII, such as 'package\.module', not an __init__, got",
        ):
            Extension(name, ["m.pyx"])

    def test_the_limited_api(self):
        with pytest.raises(ValueError, match="py_limited_api must be left out"):
            Extension("m", ["m.pyx"], py_limited_api=True)

    def test_two_modules_in_one(self):
        with pytest.raises(ValueError, match=r"at most one Cython file, got a\.pyx, b\.pyx: .* give each an Extension"):
            Extension("m", ["a.pyx", "c.cpp", "b.pyx"])

    @pytest.mark.parametrize("sources", ["m.pyx", [3], [None]])
    def test_sources_that_are_none(self, sources):
        with pytest.raises(TypeError, match="sources must be a list of paths"):
            Extension("m", sources)


@pytest.mark.slow
class TestBuildExtension:
    def test_a_project_in_place(self, project):
        """A pattern finds several modules of a package, and they import from the folder of their sources."""
        package = project / "package"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "one.pyx").write_text("# distutils: define_macros=NUMBER=1\n" + USES_NUMBER)
        (package / "two.pyx").write_text("# distutils: define_macros=NUMBER=2\n" + USES_NUMBER)
        write_setup(project, "'package.*', ['package/*.pyx']", packages=["package"])
        run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"])
        code = "from package import one, two; print(one.number(), two.number(), one.__name__)"
        assert run([sys.executable, "-c", code]) == "1 2 package.one\n"

    def test_an_editable_install(self, project):
        """Works although setuptools finalizes the command twice."""
        (project / "editable_module.pyx").write_text(
            "cimport torch\ndef f(torch.Tensor x not None): return x.cdata.dim()\n"
        )
        write_setup(project, "'editable_module', ['editable_module.pyx']", name="editable", py_modules=[])
        (project / "_editable_module_torch_2_99.so").touch()
        pip = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--use-pep517"]
        run([*pip, "--target", project / "site", "-e", "."])
        code = "import editable_module, torch; print(editable_module.f(torch.ones(2, 3)))"
        assert run([sys.executable, "-c", code]) == "2\n"

    def test_the_macro_of_torch_names_the_module(self, project):
        (project / "macro.cpp").write_text(
            "#include <Python.h>\n"
            "static PyModuleDef definition = {PyModuleDef_HEAD_INIT};\n"
            "#define JOIN_(a, b) a##b\n#define JOIN(a, b) JOIN_(a, b)\n"
            "PyMODINIT_FUNC JOIN(PyInit_, TORCH_EXTENSION_NAME)() { return PyModuleDef_Init(&definition); }\n"
        )
        build = "BuildExtension.with_options(no_python_abi_suffix=True)"
        write_setup(project, "'macro', ['macro.cpp']", name="macro", build=build)
        run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"])
        assert (project / "macro.so").exists()
        assert run([sys.executable, "-c", "import macro; print(macro.__name__)"]) == "macro\n"

    def test_an_sdist_has_the_projects_own_sources(self, project):
        (project / "module.pyx").write_text("cimport torch\n")
        write_setup(project, "'module', ['module.pyx']")
        run([sys.executable, "setup.py", "-q", "sdist"])
        with tarfile.open(next((project / "dist").glob("*.tar.gz"))) as sdist:
            names = {name.partition("/")[2] for name in sdist.getnames()}
        assert "module.pyx" in names
        assert not any(name.endswith(".cpp") for name in names)

    def test_two_halves(self, project):
        (project / "module.pyx").write_text("cimport torch\n")
        bootstrap, native = finalized(Extension("package.module", ["module.pyx"]))
        abi = interop.abi.NAME
        assert (bootstrap.name, native.name) == ("package.module", f"package._module_{abi}")
        assert ("INTEROP_ABI", f'"{abi}"') in bootstrap.define_macros
        assert "torch_cpu" not in bootstrap.libraries
        assert native.sources == ["module.pyx"]  # Cython runs during the build

    def test_one_half_without_bootstrap(self, project):
        (project / "module.pyx").write_text("cimport torch\n")
        (extension,) = finalized(Extension("module", ["module.pyx"], bootstrap=False))
        assert extension.name == "module"

    def test_other_extensions_stay_as_they_are(self, project):
        other = setuptools.Extension("other", ["other.c"])
        assert finalized(other) == [other]

    @pytest.mark.parametrize("use_ninja", [True, False])
    def test_objects_of_another_torch_are_not_linked(self, monkeypatch, use_ninja):
        """Neither a command nor an object names the torch, whose headers may be older than the object."""
        folders = []
        for version in (torch.__version__, "2.99.0"):
            monkeypatch.setattr(torch, "__version__", version)
            command = BuildExtension(Distribution({"name": "project", "ext_modules": []}), use_ninja=use_ninja)
            command.ensure_finalized()
            assert command.force
            folders.append(command.build_temp)
        assert folders[0] != folders[1]
        assert folders[1].endswith("/torch-2.99.0")
        command = BuildExtension(Distribution({"name": "project", "ext_modules": []}))
        command.build_temp = "mine"
        command.ensure_finalized()
        assert command.build_temp == "mine"


class TestSeveralAtOnce:
    """The option `parallel`. With torch's own command, all extensions write the same build.ninja."""

    @pytest.mark.parametrize(
        ("parallel", "one", "two"),
        [
            (None, ("objects", None), ("objects", None)),
            (2, ("objects/one", "3"), ("objects/two", "3")),
            (9, ("objects/one", "3"), ("objects/two", "3")),
            (True, ("objects/one", "3"), ("objects/two", "3")),
        ],
    )
    def test_each_has_a_folder_and_its_share_of_the_processors(self, project, monkeypatch, parallel, one, two):
        built = {}
        monkeypatch.setattr(os, "cpu_count", lambda: 6)
        monkeypatch.delenv("MAX_JOBS", raising=False)
        monkeypatch.setattr(
            build_ext,
            "build_extension",
            lambda self, extension: built.update({extension.name: (self.build_temp, os.environ.get("MAX_JOBS"))}),
        )
        command = self.command(*(Extension(name, [f"{name}.cpp"], bootstrap=False) for name in ("one", "two")))
        command.parallel, command.build_temp = parallel, "objects"
        command.ensure_finalized()
        command.run()
        assert built == {"one": one, "two": two}
        assert "MAX_JOBS" not in os.environ

    def test_bootstraps_are_too_small_to_count(self, monkeypatch):
        monkeypatch.setattr(os, "cpu_count", lambda: 6)
        monkeypatch.delenv("MAX_JOBS", raising=False)
        command = self.command(*(Extension(name, [f"{name}.cpp"]) for name in ("one", "two")))
        command.parallel = True
        command.ensure_finalized()
        assert len(command.extensions) == 4
        assert command._jobs() == {"MAX_JOBS": "3"}

    def test_the_users_number_of_jobs_wins(self, monkeypatch):
        monkeypatch.setenv("MAX_JOBS", "7")
        command = self.command()
        command.parallel = 2
        assert command._jobs() == {}

    def test_an_editable_install_keeps_the_option(self):
        distribution = Distribution(
            {"options": {"build_ext": {"parallel": 2}}, "cmdclass": {"build_ext": BuildExtension}}
        )
        command = distribution.get_command_obj("build_ext")
        command.ensure_finalized()
        assert command.parallel == 2
        assert distribution.reinitialize_command(command).parallel == 2

    @pytest.mark.slow
    def test_modules_that_were_compiled_at_once(self, project):
        for name in ("one", "two", "three"):
            (project / f"{name}.pyx").write_text(f"NAME = '{name}'\n")
        extensions = ", ".join(f"Extension('{name}', ['{name}.pyx'])" for name in ("one", "two", "three"))
        (project / "setup.py").write_text(
            "from setuptools import setup\n"
            "from interop.build import BuildExtension, Extension\n"
            f"setup(name='several', ext_modules=[{extensions}], cmdclass={{'build_ext': BuildExtension}})\n"
        )
        run([sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--parallel=3"])
        code = "import one, two, three; print(one.NAME, two.NAME, three.NAME)"
        assert run([sys.executable, "-c", code]) == "one two three\n"

    def command(self, *extensions):
        return BuildExtension(Distribution({"name": "project", "ext_modules": list(extensions)}))


class TestNinja:
    def test_that_of_pip_is_found_without_its_folder_on_path(self, tmp_path, monkeypatch):
        """Without ninja, torch compiles one file after another."""
        monkeypatch.setenv("PATH", str(tmp_path))
        assert BuildExtension(Distribution()).use_ninja
        assert os.environ["PATH"] == str(tmp_path)

    def test_that_on_path_goes_first(self, tmp_path, monkeypatch):
        """Also for the bill of materials: another release of ninja would start a new log of what is compiled."""
        (tmp_path / "ninja").write_text("#!/bin/sh\necho 'a.o: #deps 1'\necho '    /read/by/this/ninja.h'\n")
        (tmp_path / "ninja").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        assert build_ext_module._path_to_ninja() == {}
        assert load_script(TESTS.parent / "tools" / "sbom.py").headers(tmp_path) == ["/read/by/this/ninja.h"]

    @pytest.mark.parametrize("place", ["folder", "macro", "flag", "environment"])
    @pytest.mark.long
    def test_a_dollar_sign(self, project, monkeypatch, place):
        """torch does not escape it for ninja, which would read a variable there."""
        in_environment = place == "environment"
        source = project / ("a$b" if place == "folder" else "") / ("m.cpp" if in_environment else "m.c")
        source.parent.mkdir(exist_ok=True)
        source.write_text(
            '#include <Python.h>\nstatic struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "m"};\n'
            "PyMODINIT_FUNC PyInit_m(void) {\n  PyObject* found = PyModule_Create(&module);\n"
            '  PyModule_AddStringConstant(found, "TEXT", TEXT);\n  return found;\n}\n'
        )
        text = '"x$y"'
        language = "c++" if in_environment else "c"
        extension = Extension("m", [str(source)], bootstrap=False, language=language)
        if in_environment:
            monkeypatch.setenv("CFLAGS", f"'-DTEXT={text}'")
        elif place == "flag":
            extension.extra_compile_args.append(f"-DTEXT={text}")
        else:
            extension.define_macros.append(("TEXT", text))
        command = BuildExtension(Distribution({"name": "project", "ext_modules": [extension]}))
        command.inplace, command.build_temp = True, str(project / "objects")
        command.ensure_finalized()
        assert command.use_ninja
        command.run()
        assert run([sys.executable, "-c", "import torch, m; print(m.TEXT)"], cwd=project) == "x$y\n"


class TestCythonize:
    def test_defaults(self, project):
        """nonecheck is on, or line 3 would crash at run time; the language level is 3, or line 2 would not compile."""
        (project / "m.pyx").write_text(
            "cimport torch\nprint('x', end='')\ndef f(torch.Tensor x): return x.cdata.dim()\n"
        )
        (extension,) = cythonize("*.pyx")
        assert extension.name == "m"
        assert extension.language == "c++"
        assert "object has no attribute" in (project / "m.cpp").read_text()
        assert DIRECTIVES["nonecheck"]

    def test_a_directive_of_the_user_wins(self, project):
        (project / "m.pyx").write_text("cimport torch\ndef f(torch.Tensor x): return x.cdata.dim()\n")
        cythonize([Extension("m", ["m.pyx"])], compiler_directives={"nonecheck": False})
        assert "object has no attribute" not in (project / "m.cpp").read_text()

    @pytest.mark.parametrize("free_threaded", [True, False])
    @pytest.mark.parametrize("bootstrap", [True, False])
    def test_whether_a_module_needs_no_gil(self, project, free_threaded, bootstrap):
        """Applies to modules that a pattern matches, and to the half of a module that BuildExtension translates."""

        def needs_no_gil():
            # Cython 3.1 and 3.2 write it into the slot table, later releases into a macro that options can change.
            pattern = r"(?:__Pyx_FREETHREADING_COMPATIBLE|Py_mod_gil,) Py_MOD_GIL_(NOT_USED|USED)"
            return re.findall(pattern, (project / "m.cpp").read_text())[-1] == "NOT_USED"

        options = {"bootstrap": bootstrap, "free_threaded": free_threaded}
        for name in ("*", "m"):
            (project / "m.pyx").write_text(f"x = {len(name + str(options))}\n")
            cythonize(Extension(name, ["m.pyx"], **options))
            assert needs_no_gil() is free_threaded
            (project / "m.cpp").unlink()
        cythonize(finalized(Extension("m", ["m.pyx"], **options))[-1])
        assert needs_no_gil() is free_threaded

    def test_a_module_of_cpp_says_itself_that_it_needs_no_gil(self):
        with pytest.raises(ValueError, match=r"free_threaded needs .* PyUnstable_Module_SetGIL"):
            Extension("m", ["m.cpp"], free_threaded=True)


class TestSelection:
    """Cython sees only the functions that a source, or a file that it cimports or includes, may refer to."""

    def declared(self, project):
        (functions,) = (project / "build" / "interop-pxd").glob("*/pxd/interop/functions.pxd")
        return set(re.findall(r"(\w+)(?: \"[\w:]+\")?(?:\[[\w, ]+\])?\(.*except \+", functions.read_text()))

    def test_names_in_a_source_and_in_what_it_reads(self, project):
        (project / "module.pyx").write_text(
            "cimport torch\ncimport ATen as at\nfrom helper cimport twice\ninclude 'more.pxi'\n"
            "def f(torch.Tensor x not None): return torch.wrap(at.exp(twice(x.cdata)))\n"
        )
        (project / "helper.pxd").write_text(
            "cimport ATen as at\ncdef inline at.Tensor twice(const at.Tensor& x): return at.mul(x, 2)\n"
        )
        (project / "more.pxi").write_text("def g(torch.Tensor x not None): return torch.wrap(at.cosh(x.cdata))\n")
        (extension,) = cythonize("module.pyx")
        assert {"exp", "mul", "cosh"} <= self.declared(project)
        assert "sinh" not in self.declared(project)
        header = Path(extension.include_dirs[0], "interop", "functions.h").read_text()
        assert set(re.findall(r"<ATen/ops/(\w+)_ops.h>", header)) == {"exp", "mul", "cosh"}

    def test_headers_that_nothing_needs(self, project):
        (project / "plain.pyx").write_text("cimport ATen as at\ndef f(): at.exp(at.zeros((2,)))\n")
        (project / "indexed.pyx").write_text(
            "cimport ATen as at\nfrom interop cimport indices\ndef f(): at.zeros((2,)).index(indices(<long>0))\n"
        )
        cythonize("plain.pyx")
        cythonize("indexed.pyx")
        assert "interop/indexing.h" not in (project / "plain.cpp").read_text()
        assert "interop/indexing.h" in (project / "indexed.cpp").read_text()
        assert "interop/elementwise.h" not in (project / "indexed.cpp").read_text()

    @pytest.mark.long
    def test_errors_of_the_compiler_name_the_line(self, project):
        (project / "wrong.pyx").write_text("cimport ATen as at\n\ndef f():\n    at.zeros((1.5, 2))\n")
        write_setup(project, "'wrong', ['wrong.pyx']", name="wrong")
        command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert "\nwrong.pyx:4:8: a parameter of 'zeros', of type " in done.stderr

    @pytest.mark.long
    def test_the_build_ends_with_one_line(self, project):
        (project / "broken.pyx").write_text("cimport torch\ndef f(:\n")
        write_setup(project, "'broken', ['broken.pyx']", name="broken")
        command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert done.stderr.strip().splitlines()[-1].startswith("error: Cython cannot translate broken.pyx")

    @pytest.mark.parametrize("language", ["", "# distutils: language = c++\n"])
    @pytest.mark.parametrize("needed", ["torch", "ATen as at", "interop.bridges"])
    def test_an_extension_of_setuptools(self, project, language, needed):
        """It lacks our headers and flags, and Cython and the compiler would say so in their own words."""
        (project / "plain.pyx").write_text(f"{language}cimport {needed}\n")
        command = BuildExtension(
            Distribution({"name": "project", "ext_modules": [setuptools.Extension("plain", ["plain.pyx"])]})
        )
        command.inplace = True
        command.finalize_options()
        with pytest.raises(setuptools.errors.SetupError, match=r"'plain' cimports \w+, .*interop\.build\.Extension"):
            command.build_extensions()

    def test_another_encoding(self, project):
        (project / "latin.pyx").write_bytes(
            "# -*- coding: latin-1 -*-\ncimport ATen as at\nNAME = 'é'\ndef f(): at.exp(at.zeros((2,)))\n".encode(
                "latin-1"
            )
        )
        cythonize("latin.pyx")
        assert {"exp", "zeros"} <= self.declared(project)

    def test_the_same_selection_is_written_once(self, project):
        (project / "once.pyx").write_text("cimport ATen as at\ndef f(): at.zeros((2,)).exp()\n")
        cythonize("once.pyx")
        first = {path: path.stat().st_mtime_ns for path in (project / "build").rglob("*.pxd")}
        cythonize("once.pyx", force=True)
        assert {path: path.stat().st_mtime_ns for path in (project / "build").rglob("*.pxd")} == first

    @pytest.mark.parametrize(
        ("code", "message"),
        [
            ("include 'missing.pxi'\n", "there is no file 'missing.pxi' to include"),
            ("# coding: nonsense\nx = 1\n", "unknown encoding: nonsense"),
            ("# coding: utf-16\nx = 1\n", "the encoding utf-16 .* save it in UTF-8"),
            ("# coding: idna\nx = 1\n", "Unsupported error handling"),
            ("# distutils: bogus = x\n", "# distutils: has no setting 'bogus'; it has define_macros, "),
            ("include 'unread.pyx'\n", "a file is included by itself"),
            ("include u'unread.pyx'\n", "a file is included by itself"),
            ("include '/dev/zero'\n", "/dev/zero, which the source includes or cimports, is not a file"),
        ],
    )
    def test_a_source_that_cannot_be_read(self, project, code, message):
        (project / "unread.pyx").write_text(code)
        with pytest.raises(TranslationError, match=message) as raised:
            cythonize("unread.pyx")
        if "/dev/zero" not in code:
            assert (raised.value.filename, raised.value.lineno) == ("unread.pyx", 1)

    @pytest.mark.parametrize("exclude", [["p/bad.pyx"], ["p/{bad,worse}.pyx"], ["**/bad.pyx"], "p/b*.pyx", iter])
    def test_an_excluded_source_is_not_read(self, project, exclude):
        (project / "p").mkdir()
        (project / "p" / "good.pyx").write_text("def f(): pass\n")
        (project / "p" / "bad.pyx").write_text("# distutils: bogus = x\n")
        given = iter(["p/b*"]) if exclude is iter else exclude
        (extension,) = cythonize([Extension("*", ["p/*.pyx"])], exclude=given)
        assert extension.name == "good"

    def test_a_file_that_is_included_often(self, project):
        (project / "part.pxi").write_text("x = 1\n")
        (project / "often.pyx").write_text("include 'part.pxi'\n" * 150)
        cythonize("often.pyx")
        (project / "part.pxi").write_text("# Keep what you include.\nx = 1  # include\n")
        cythonize("often.pyx", force=True)

    @pytest.mark.parametrize("depth", [0, 400])
    def test_a_file_that_includes_itself_in_blocks(self, project, depth):
        """Cython's recursion takes more of the stack there, of which a deep caller leaves less."""

        def call(depth):
            return call(depth - 1) if depth else cythonize("nested.pyx")

        blocks = "".join(f"{'    ' * depth}IF True:\n" for depth in range(20))
        (project / "nested.pyx").write_text(f"{blocks}{'    ' * 20}include u'nested.pyx'\n")
        with pytest.raises(TranslationError, match=r"a file is included by itself, or more than \d+ times"):
            call(depth)

    def test_a_text_that_cython_cannot_write(self, project):
        (project / "surrogate.pyx").write_text("def f():\n    '\\udfff'\n")
        with pytest.raises(TranslationError, match=r"Cython cannot write '\\udfff' in utf-8"):
            cythonize("surrogate.pyx")

    @pytest.mark.parametrize("place", ["beside the source", "in the current folder"])
    def test_a_pipe_of_another_user(self, project, monkeypatch, place):
        """It is not read, which could take for ever; only the source's own folder and the path are searched."""
        folder = project / "here"
        folder.mkdir()
        (project / "private").mkdir()
        source = project / "private" / "piped.pyx"
        source.write_text("cimport numbers_of_piped\nx = numbers_of_piped.ONE\n")
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "path", [one for one in sys.path if one and one != os.getcwd()])
        if place == "in the current folder":
            os.mkfifo("numbers_of_piped.pxd")
            with pytest.raises(TranslationError, match=r"'numbers_of_piped\.pxd' not found"):
                cythonize(str(source))
        else:
            (source.parent / "numbers_of_piped.pxd").write_text("cdef enum: ONE = 1\n")
            os.mkfifo(source.with_suffix(".pxd"))
            with pytest.raises(TranslationError, match=r"piped\.pxd, which the source includes or cimports, is not a"):
                cythonize(str(source))

    @pytest.mark.parametrize("change", ["source", "included", "declarations", "directives", "cut short"])
    @pytest.mark.long
    def test_what_changed_is_translated_again(self, project, monkeypatch, change):
        """Regardless of the files' modification times."""
        (project / "again.pyx").write_text("cimport ATen as at\ninclude 'more.pxi'\ndef f(): at.zeros((2,)).exp()\n")
        (project / "more.pxi").write_text("cdef int one = 1\n")
        cythonize("again.pyx")
        translated, mark = project / "again.cpp", "\n// made earlier\n"
        translated.write_text(translated.read_text().replace("\n", mark, 1))
        cythonize("again.pyx")
        assert mark in translated.read_text()
        options = {}
        if change in ("source", "included"):
            path = project / {"source": "again.pyx", "included": "more.pxi"}[change]
            path.write_text(path.read_text() + "cdef int two = 2\n")
            os.utime(path, (0, 0))
        elif change == "declarations":
            shutil.copytree(interop.get_pxd_dir(), project / "pxd")
            with (project / "pxd" / "ATen" / "Parallel.pxd").open("a") as file:
                file.write("# changed\n")
            monkeypatch.setattr("interop.cython.translate.get_pxd_dir", lambda: str(project / "pxd"))
        elif change == "directives":
            options = {"compiler_directives": {"boundscheck": False}}
        else:
            translated.write_text(translated.read_text()[:-10])
        cythonize("again.pyx", **options)
        assert mark not in translated.read_text()

    @pytest.mark.parametrize(
        "call", ["t.std(True)", "t.sort(True)", "t.var(1)", "t.std(v, 2)", "t.argsort(flag)", "at.IntArrayRef(v)"]
    )
    def test_a_call_that_would_mean_something_else_is_refused(self, project, call):
        name = "refused_" + "".join(c for c in call if c.isalnum())
        (project / f"{name}.pyx").write_text(
            "cimport ATen as at\nfrom libc.stdint cimport int64_t\nfrom libcpp.vector cimport vector\n"
            f"cdef void f(at.Tensor t, bint flag, vector[int64_t] v):\n    {call}\n"
        )
        with pytest.raises(TranslationError):
            cythonize(f"{name}.pyx")


def test_folders():
    """The folders given to Cython and the compiler exist."""
    assert (Path(interop.get_pxd_dir()) / "torch" / "__init__.pxd").is_file()
    assert (Path(interop.get_include()) / "interop" / "tensor.h").is_file()


def test_build_info():
    info = _core.build_info()
    assert torch.__version__.startswith(info["torch"])
    assert info["cxx_standard"] >= 202002
    assert info["compiler"]
