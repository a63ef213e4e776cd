"""The build helpers: what they add to an extension, and what they refuse."""

import builtins
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import setuptools
import torch
from conftest import run
from Cython.Compiler import Errors
from Cython.Compiler.Main import CompilationOptions, Context, default_options
from setuptools import Distribution

import interop
from interop import _core
from interop.build import DIRECTIVES, BuildExtension, Extension, TranslationError, cythonize, openmp_flags
from interop.cython import checks
from interop.cython.translate import rules

USES_NUMBER = """
cimport torch

cdef extern from *:
    int NUMBER

def number():
    return NUMBER
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_setup(project, module, name="project", build="BuildExtension", **arguments):
    """The setup.py of a project with one extension, whose arguments `module` are."""
    listed = "".join(f", {key}={value!r}" for key, value in arguments.items())
    (project / "setup.py").write_text(
        "from setuptools import setup\n"
        "from interop.build import BuildExtension, Extension\n"
        f"setup(name={name!r}, ext_modules=[Extension({module})], cmdclass={{'build_ext': {build}}}{listed})\n"
    )


def finalized(*extensions):
    """What setuptools is to build for these extensions."""
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

    def test_flags_of_the_user_come_last(self):
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
            match=r"name must be a module's dotted name in ASCII, such as 'package\.module', and no __init__, got",
        ):
            Extension(name, ["m.pyx"])

    def test_the_limited_api(self):
        with pytest.raises(ValueError, match="py_limited_api must be left out"):
            Extension("m", ["m.pyx"], py_limited_api=True)

    def test_two_modules_in_one(self):
        with pytest.raises(ValueError, match=r"one Cython file at most, got a\.pyx, b\.pyx: .* give each an Extension"):
            Extension("m", ["a.pyx", "c.cpp", "b.pyx"])

    @pytest.mark.parametrize("sources", ["m.pyx", [3], [None]])
    def test_sources_that_are_none(self, sources):
        with pytest.raises(TypeError, match="sources must be a list of paths"):
            Extension("m", sources)


@pytest.mark.long
class TestBuildExtension:
    def test_a_project_in_place(self, project):
        """Modules in a package, of several sources, found by a pattern; imported from where the sources are."""
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
        """setuptools finalizes the command twice for it."""
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
        assert native.sources == ["module.pyx"]  # translated when it is built

    def test_one_half_without_bootstrap(self, project):
        (project / "module.pyx").write_text("cimport torch\n")
        (extension,) = finalized(Extension("module", ["module.pyx"], bootstrap=False))
        assert extension.name == "module"

    def test_other_extensions_stay_as_they_are(self, project):
        other = setuptools.Extension("other", ["other.c"])
        assert finalized(other) == [other]


class TestCythonize:
    def test_defaults(self, project):
        """The third line would crash at run time without nonecheck, and `print` is no statement in language level 3."""
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

    @pytest.mark.parametrize("guard", ["NoGradGuard", "AutoGradMode", "InferenceMode"])
    def test_a_guard_that_would_do_nothing(self, project, guard):
        (project / "m.pyx").write_text(
            f"cimport torch\ndef f():\n    cdef torch.{guard} mode  # not begun\n    return 1\n"
        )
        with pytest.raises(SyntaxError, match=rf"'mode' is declared but never assigned.*torch\.{guard}") as raised:
            cythonize("m.pyx")
        assert (raised.value.filename, raised.value.lineno) == ("m.pyx", 3)
        (project / "m.pyx").write_text(
            f"cimport torch\ndef f():\n    cdef torch.{guard} mode = torch.{guard}()\n    return 1\n"
        )
        cythonize("m.pyx")

    @pytest.mark.parametrize(
        ("module", "guard", "begin"),
        [
            ("interop.cuda", "Launch", "Launch(x.cdata)"),
            ("c10.core.DeviceGuard", "DeviceGuard", "DeviceGuard(x.cdata.device())"),
            ("c10.cuda", "CUDAGuard", "CUDAGuard(x.cdata.device())"),
        ],
    )
    def test_a_guard_of_devices_that_would_do_nothing(self, project, module, guard, begin):
        text = f"cimport torch\nfrom {module} cimport {guard}\ndef f(torch.Tensor x):\n    cdef {guard} guard"
        (project / "m.pyx").write_text(f"{text}\n    return 1\n")
        with pytest.raises(SyntaxError, match=rf"'guard' is declared but never assigned.*= {guard}\("):
            cythonize("m.pyx")
        (project / "m.pyx").write_text(f"{text} = {begin}\n    return 1\n")
        cythonize("m.pyx")
        if guard != "Launch":
            (project / "m.pyx").write_text(f"{text}\n    guard.set_index(0)\n    return 1\n")
            cythonize("m.pyx")

    @pytest.mark.parametrize(
        "line",
        [
            "torch.NoGradGuard()",
            "Launch(x.cdata)  # here",
            "Launch(x.cdata).check(0, b'')",
            "stream = Launch(x.cdata).stream()",
            "f(Launch(x.cdata).stream())",
        ],
    )
    def test_a_guard_that_nobody_keeps(self, project, line):
        (project / "m.pyx").write_text(
            f"cimport torch\nfrom interop.cuda cimport Launch\ndef f(torch.Tensor x):\n    {line}\n"
        )
        with pytest.raises(SyntaxError, match=r"would end with its statement; write: cdef [\w.]+ guard = ") as raised:
            cythonize("m.pyx")
        assert raised.value.lineno == 4

    def test_guards_in_words(self, project):
        (project / "m.pyx").write_text(
            'cimport torch\ndef f():\n    """torch.NoGradGuard() is one, and Launch(x).stream() no part."""\n'
            "    # Launch(x).stream()\n    cdef torch.NoGradGuard guard = torch.NoGradGuard()  # NoGradGuard()\n"
        )
        cythonize("m.pyx")

    @pytest.mark.parametrize("declared", ["except *", "except +", "noexcept"])
    def test_a_kernel_that_needs_the_gil(self, project, declared, capsys):
        """torch would call it without: a template takes functions of any kind."""
        text = (
            "cimport ATen as at\nfrom torch.autograd cimport Context, Function\n"
            "from torch.library cimport impl, register_autograd\n"
            "cdef at.Tensor kernel(const at.Tensor& x) {declared}: return x\n"
            "cdef at.Tensor part(Context& ctx, const at.Tensor& x) {declared}: return x\n"
            "cdef Function[at.Tensor] function\n"
            "function.define('F', part, part)\n"
            "impl('a::b', 'CPU', kernel)\nregister_autograd('a::b', part)\n"
        )
        (project / "m.pyx").write_text(text.format(declared=declared))
        with pytest.raises(TranslationError):
            cythonize("m.pyx")
        assert re.findall(r"m.pyx:(\d+):\d+: torch calls this function without the GIL", capsys.readouterr().err) == [
            "7",
            "7",
            "8",
            "9",
        ]
        for held in ("nogil", "with gil"):
            (project / "m.pyx").write_text(text.format(declared=f"{declared} {held}"))
            cythonize("m.pyx")

    UNFIT = (  # functions, and calls of them
        "cdef inline floating one(floating x) {declared}: return x\n"
        "cdef void loop(char** d, const int64_t* s, int64_t n, floating* _) {declared}: pass\n"
        "cdef void loop2d(char** d, const int64_t* s, int64_t n, int64_t m, floating* _) {declared}: pass\n"
        "cdef void plain(char** d, const int64_t* s, int64_t n, void* _) {declared}: pass\n"
        "cdef void part(int64_t begin, int64_t end, void* _) {declared}: pass\n"
        "cdef void element(at.TensorIterator& part, void* _) {declared}: pass\n",
        "    elementwise(b'one', kernel(one[float], one[double]), x)",
        "    x = at.add(elementwise_out(b'one', x, kernel((one[float])), x), 1)",
        "    reduce(b'one', kernel(one[float]), x, 0)",
        "    it.for_each(dispatch(at.kFloat, b'loop', loop[float], loop[double]), NULL)",
        "    it.for_each(dispatch2d(at.kFloat, b'loop', loop2d[float]), NULL)",
        "    it.for_each(plain, NULL)",
        "    it.foreach_reduced_elt(element, NULL)",
        "    at.parallel_for(0, 1, 1, part, NULL)",
    )
    BEGIN = (
        "cimport ATen as at\nfrom interop cimport dispatch, dispatch2d, dispatch_part, elementwise, elementwise_out\n"
        "from interop cimport floating, kernel, reduce\n"
        "from libc.stdint cimport int64_t\nfrom torch.autograd cimport Context, Function\n"
        "from torch.library cimport impl, register_autograd\n"
    )

    def refusals(self, project, capsys, *lines):
        """The lines that Cython refuses, and why."""
        (project / "m.pyx").write_text(self.BEGIN + "\n".join(lines) + "\n")
        with pytest.raises(TranslationError):
            cythonize("m.pyx")
        text = (project / "m.pyx").read_text().splitlines()
        found = re.findall(r"^m.pyx:(\d+):\d+: (.*)", capsys.readouterr().err, re.MULTILINE)
        return [(text[int(line) - 1], message) for line, message in found]

    def test_a_function_for_torchs_threads_that_needs_the_gil(self, project, capsys):
        """Also one specialisation of a fused function, in a call within an expression."""
        functions, *calls = self.UNFIT
        begin = "cdef void f(at.Tensor x, at.TensorIterator it) except *:"
        refused = self.refusals(project, capsys, functions.format(declared="noexcept"), begin, *calls)
        assert list(dict.fromkeys(line for line, _ in refused)) == calls
        assert sum(line == calls[0] for line, _ in refused) == 2  # of two functions
        assert {message for _, message in refused} == {
            "torch calls this function without the GIL; declare it `nogil`, or `with gil`"
        }
        for held in ("nogil", "with gil"):
            lines = [self.BEGIN, functions.format(declared=f"noexcept {held}"), begin, *calls]
            (project / "m.pyx").write_text("\n".join(lines) + "\n")
            cythonize("m.pyx")

    def test_a_function_of_a_kernel_that_is_not_noexcept(self, project, capsys):
        """Between two elements nobody looks whether it has raised."""
        refused = self.refusals(
            project,
            capsys,
            "cdef inline float f(float x) except? -1 nogil: return x",
            "cdef inline int64_t g(int64_t x, int64_t y) except *: return x",
            "cdef void use(at.Tensor x):",
            "    elementwise(b'f', kernel(f), x)",
            "    reduce(b'g', kernel(g), x, 0)",
        )
        assert [message for _, message in refused] == [
            "a function of kernel() must be noexcept: cdef float f(float x) noexcept nogil",
            "torch calls this function without the GIL; declare it `nogil`, or `with gil`",
        ]

    def test_a_function_of_another_kind_than_dispatched(self, project, capsys):
        functions, *_ = self.UNFIT
        refused = self.refusals(
            project,
            capsys,
            functions.format(declared="noexcept nogil"),
            "cdef void ranges(int64_t begin, int64_t end, floating* data) noexcept nogil: pass",
            "cdef void use(at.TensorIterator it) except *:",
            "    it.for_each(dispatch(at.kFloat, b'x', loop2d[float]), NULL)",
            "    it.for_each(dispatch2d(at.kFloat, b'x', ranges[float]), NULL)",
            "    at.parallel_for(0, 1, 1, dispatch_part(at.kFloat, b'x', loop[float]), NULL)",
            "    at.parallel_for(0, 1, 1, dispatch(at.kFloat, b'x', ranges[float], ranges[double]), NULL)",
            "    at.parallel_for(0, 1, 1, ranges[float], NULL)",
        )
        loop = (
            "a function of dispatch() has the parameters (char** data, const int64_t* strides, int64_t n, floating* _)"
        )
        found = list(dict.fromkeys(message for _, message in refused))
        assert found[0] == f"{loop}; for this one there is dispatch2d()"
        assert found[1].endswith("int64_t n, int64_t m, floating* _); for this one there is dispatch_part()")
        assert found[2].endswith("(int64_t begin, int64_t end, floating* _); for this one there is dispatch()")
        assert found[3] == f"{loop}; for this one there is dispatch_part()"
        assert found[-1] == (
            "the last parameter of a function that torch calls is a void*; for this one there is dispatch_part()"
        )

    def test_a_function_of_python(self, project, capsys):
        refused = self.refusals(
            project,
            capsys,
            "def f(x): return x",
            "cdef Function[at.Tensor] function",
            "function.define('F', f, f)",
            "impl('a::b', 'CPU', f)",
            "impl('a::b', 'CPU', lambda x: x)",
            "register_autograd('a::b', f)",
            "cdef void use(at.Tensor x): elementwise(b'f', kernel(f), x)",
            "cdef void iterate(at.TensorIterator it): it.for_each(f, NULL)",
        )
        what = ["forward or backward function"] * 2 + ["kernel"] * 2
        what += ["function of register_autograd", "function of kernel()", "function that torch calls"]
        assert [message for _, message in refused] == [
            f"a {name} is a cdef function, and this is a Python object" for name in what
        ]


class TestSelection:
    """Cython is told of the functions alone that a source, or a file that it cimports or includes, can mean."""

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

    def test_an_unknown_function(self, project):
        """In code, not in a comment or a string."""
        (project / "unknown.pyx").write_text(
            '"""About at.nothing."""\ncimport ATen as at\n# at.nothing\n'
            "cdef at.Tensor f(at.Tensor t):\n    return at.sqare(t)\n"
        )
        with pytest.raises(SyntaxError, match=r"ATen has no 'sqare'; did you mean at\.square\?") as raised:
            cythonize("unknown.pyx")
        assert raised.value.lineno == 5

    @pytest.mark.parametrize(
        ("code", "message"),
        [
            ("cimport ATen as at\ndef f(): at.tensor([1])\n", r"ATen has no 'tensor'"),
            ("cimport torch\ndef f(torch.Tensor x): torch.tanh(x)\n", r"torch has no 'tanh'; write at\.tanh"),
            ("cimport torch\ndef f(): torch.no_grad()\n", r"torch has no 'no_grad'; for Python's, write: import torch"),
            (
                "cimport torch\ndef f(): torch.float64\n",
                r"no 'float64'; the ScalarType is at\.kDouble, after: ",
            ),
            (
                "cimport torch\ndef f(): torch.cuda.init()\n",
                r"no 'cuda'; for Python's.*: from ATen\.cuda cimport",
            ),
            (
                "cimport ATen as at\ndef f(): at.cuda.init()\n",
                r"no 'cuda'; for C\+\+'s, write: from ATen\.cuda",
            ),
            ("cimport ATen as at\ndef f(): at.float\n", r"ATen has no 'float'; the ScalarType is at\.kFloat"),
            (
                "cimport ATen as at\ndef f(): at.elementwise()\n",
                r"ATen has no 'elementwise'; write: from interop cimport elementwise \(",
            ),
            (
                "cimport ATen as at\ndef f(): at.current_stream()\n",
                r"ATen has no 'current_stream'; write: from interop\.stream cimport current_stream \(",
            ),
            (
                "cimport interop\ndef f(): interop.load()\n",
                r"the cimported interop has no 'load'; for Python's, write: import interop \(",
            ),
            (
                "cimport torch\ndef f(): torch.indices()\n",
                r"torch has no 'indices'; write: from interop cimport indices; for Python's",
            ),
            ("import ATen as at\ndef f(): at.relu\n", r"no Python module ATen; write: cimport ATen as at"),
            ("from ATen import relu\n", r"no Python module ATen; write: cimport ATen as at"),
        ],
    )
    def test_a_name_of_another_module(self, project, code, message):
        (project / "other.pyx").write_text(code)
        with pytest.raises(SyntaxError, match=message):
            cythonize("other.pyx")
        package = code.split()[1]
        if package != "ATen" and code.startswith("cimport"):
            (project / "other.pyx").write_text(f"import {package}\n{code}")
            cythonize("other.pyx")

    def test_a_package_by_its_own_name(self, project):
        (project / "own.pyx").write_text("cimport ATen\ncimport ATen.cuda\ndef f(): return ATen.cuda.is_available()\n")
        cythonize("own.pyx")

    @pytest.mark.parametrize("module", ["ATen", "interop", "torch"])
    def test_the_names_are_those_that_cython_finds(self, module):
        """One that is missing would be refused, and one too many would crash Cython."""
        options = CompilationOptions(default_options, include_path=[interop.get_pxd_dir()], cplus=True)
        with rules():
            Errors.init_thread()
            entries = Context.from_options(options).find_module(module, need_pxd=True).entries
        of_modules = {"__builtins__", "__cached__", "__file__", "__loader__", "__path__", "__spec__", "at"}
        found = {name for name in entries if not name.startswith("__pyx")} - vars(builtins).keys() - of_modules
        assert checks._names_in(interop.get_pxd_dir(), module) - vars(builtins).keys() == found

    @pytest.mark.parametrize("target", ["x.cdata", "self.held.cdata", "x.cdata, a"])
    def test_a_tensor_in_place_of_another(self, project, capfd, target):
        """The Python object of the other would be another one."""
        name = "replaced_" + "".join(c for c in target if c.isalnum())
        value = "x.cdata, 1" if ", " in target else "x.cdata"
        (project / f"{name}.pyx").write_text(
            "cimport torch\ncimport ATen as at\ncdef class C:\n    cdef torch.Tensor held\n    cdef at.Tensor cdata\n"
            f"    def f(self, torch.Tensor x):\n        self.cdata = x.cdata\n        {target} = {value}\n"
        )
        with pytest.raises(TranslationError):
            cythonize(f"{name}.pyx")
        said = capfd.readouterr().err
        assert said.count("cannot be replaced") == 1
        assert f"{name}.pyx:8:" in said

    @pytest.mark.parametrize("statement", ["t += 1", "t -= t", "x.cdata *= t", "v[0] /= 2.0"])
    def test_in_place_operators(self, project, capfd, statement):
        """They would end the process where they failed."""
        name = "inplace_" + "".join(c for c in statement if c.isalnum())
        (project / f"{name}.pyx").write_text(
            "cimport torch\ncimport ATen as at\nfrom libcpp.vector cimport vector\n"
            f"def f(torch.Tensor x not None, vector[at.Tensor] v):\n    cdef at.Tensor t = x.cdata\n    {statement}\n"
            if "v[" not in statement
            else "cimport ATen as at\nfrom libcpp.vector cimport vector\n"
            f"cdef void f(vector[at.Tensor]& v) except *:\n    {statement}\n"
        )
        with pytest.raises(TranslationError):
            cythonize(f"{name}.pyx")
        assert "would end the process; write t = t " in capfd.readouterr()[1]

    def test_numbers_in_place(self, project):
        (project / "numbers.pyx").write_text("cimport ATen as at\ndef f(int n):\n    n += 1\n    return n\n")
        cythonize("numbers.pyx")

    @pytest.mark.long
    def test_errors_of_the_compiler_name_the_line(self, project):
        (project / "wrong.pyx").write_text("cimport ATen as at\n\ndef f():\n    at.zeros((1.5, 2))\n")
        write_setup(project, "'wrong', ['wrong.pyx']", name="wrong")
        command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert "wrong.pyx:4:" in done.stdout + done.stderr

    @pytest.mark.long
    def test_the_build_ends_with_one_line(self, project):
        (project / "broken.pyx").write_text("cimport torch\ndef f(:\n")
        write_setup(project, "'broken', ['broken.pyx']", name="broken")
        command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert done.stderr.strip().splitlines()[-1].startswith("error: Cython cannot translate broken.pyx")

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

    @pytest.mark.parametrize("change", ["source", "included", "declarations", "directives", "cut short"])
    def test_what_changed_is_translated_again(self, project, monkeypatch, change):
        """Whatever the dates of the files are."""
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
    """What Cython and the compiler are told is there."""
    assert (Path(interop.get_pxd_dir()) / "torch" / "__init__.pxd").is_file()
    assert (Path(interop.get_include()) / "interop" / "tensor.h").is_file()


IDLE_GUARDS = {
    "two at once": "def f():\n    cdef torch.NoGradGuard a, b\n    a = torch.NoGradGuard()\n",
    "in a block": "def f():\n    cdef:\n        torch.NoGradGuard a\n    return 1\n",
    "another name": "cimport torch as T\ndef f():\n    cdef T.NoGradGuard a\n",
    "assigned elsewhere": "def g():\n    a = 1\n\ndef f():\n    cdef torch.NoGradGuard a\n\ndef h():\n    a = 1\n",
    "in a generator": "def f():\n    cdef torch.NoGradGuard a = torch.NoGradGuard()\n    yield 1\n",
    "in a coroutine": "async def f():\n    cdef torch.NoGradGuard a = torch.NoGradGuard()\n    await g()\n",
    "an attribute": "cdef class C:\n    cdef torch.NoGradGuard a\n    def f(self): self.a = torch.NoGradGuard()\n",
}


@pytest.mark.parametrize("form", IDLE_GUARDS)
def test_guards_that_would_not_do_what_they_say(project, form):
    (project / "m.pyx").write_text("cimport torch\n" + IDLE_GUARDS[form])
    with pytest.raises(SyntaxError, match=r"guard would do nothing|would leak out"):
        cythonize("m.pyx")


def test_build_info():
    info = _core.build_info()
    assert torch.__version__.startswith(info["torch"])
    assert info["cxx_standard"] >= 202002
    assert info["compiler"]
