"""Modules for many releases of torch: the files that the build makes, and the reports of third-party auditors."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from functools import partial
from pathlib import Path

import pytest
import setuptools
import torch
from conftest import BUILD, FREE_THREADED, PROJECTS, TESTS, built, fingerprint, needs_limited_api, needs_stable, run
from elftools.elf.elffile import ELFFile
from setuptools import Distribution

import interop
from interop import _core
from interop.build import BuildExtension, Extension, TranslationError, cythonize
from interop.cython.declarations import OF_ONE_RELEASE
from interop.doctor.finding import Level
from interop.doctor.module import examine_module
from interop.jit import BuildError
from interop.jit.cache_folder import root
from interop.jit.cache_key import Target
from interop.paths import STABLE_LIBRARY, get_stable_dir
from interop.stable_abi import StableABI, of_macros, stable_abi
from interop.testing import check_dynamic_shapes
from interop.toolchain import MINIMUM_STABLE

RUNNING_TORCH = ".".join(torch.__version__.split(".")[:2])
RUNNING_PYTHON = f"cp{sys.version_info[0]}{sys.version_info[1]}"
TOOLS = Path(sys.executable).parent
PXD = Path(interop.get_pxd_dir())

SCALARS = """
cimport ATen as at
cimport torch
from interop cimport equal_scalars, scalar

def times(torch.Tensor x not None, number):
    return torch.wrap(at.mul(x.cdata, scalar(number)))
def of_c(torch.Tensor x not None):
    cdef double complex z = 1j
    return torch.wrap(at.mul(x.cdata, scalar(z)))
def same(a, b):
    return equal_scalars(scalar(a), scalar(b))
"""

CONDITIONS = """
cimport ATen as at
cimport torch
from interop cimport check, check_index, check_linalg, check_not_implemented, check_type, check_value
from libc.stdint cimport int64_t
from torch.library cimport define, impl

cdef at.Tensor checked_(const at.Tensor& x, int64_t what) except * nogil:
    check(what != 0, b"sizes ", x.sizes(), b" of ", x.scalar_type(), b" on ", x.device())
    check_index(what != 1, b"index ", what)
    check_type(what != 2, b"a type")
    check_value(what != 3, b"not ", 0.5)
    check_not_implemented(what != 4, b"only that")
    check_linalg(what != 5, b"singular")
    return at.clone(x)

define("interop_conditions::checked", "(Tensor x, int what) -> Tensor")
impl("interop_conditions::checked", "CPU", checked_)

def checked(torch.Tensor x not None, int64_t what):
    return torch.wrap(checked_(x.cdata, what))
"""

pytestmark = needs_stable


@pytest.fixture(scope="session")
def wheel():
    """The wheel of a project with one module, for torch >= 2.11 and CPython >= 3.11. pip installs it into `site`."""
    project = PROJECTS / "stable_build"
    work = BUILD / "stable_build"
    toml = (project / "pyproject.toml").read_text()
    with built(work, fingerprint(project, extra=toml)) as missing:
        if missing:
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(project, work)
            pip = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", work]
            run([*pip, work])
            (made,) = work.glob("*.whl")
            # pip rejects a file whose tags or metadata do not fit.
            pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", work / "site"]
            run([*pip, made])
    (made,) = work.glob("*.whl")
    return made


@pytest.fixture
def module(wheel):
    """The module's file in the wheel."""
    (found,) = (wheel.parent / "site" / "stable_build").glob("*.so")
    return found


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def finalized(*extensions, **arguments):
    """A distribution with these extensions, before anything is built."""
    commands = {"build_ext": BuildExtension}
    distribution = Distribution({"name": "project", "ext_modules": list(extensions), "cmdclass": commands, **arguments})
    distribution.get_command_obj("build_ext").ensure_finalized()
    return distribution


def stable(name="m", sources=("m.pyx",), torch="2.11", python=None):
    """An extension. One for a torch or CPython newer than those here can be described, but not built."""
    extension = Extension(name, list(sources), stable="2.11")
    extension.define_macros = StableABI(torch, python).macros
    extension.py_limited_api = python is not None
    return extension


def plain(name="n"):
    return setuptools.Extension(name, ["n.c"])


class TestArguments:
    @pytest.mark.parametrize(
        "value", ["2.10", "1.13", "2", "2.11.0", "2.99", "", "2.x", "\u0662.11", 2.11, (2, 11), True]
    )
    def test_releases_that_are_none(self, value):
        oldest, newest = ".".join(map(str, MINIMUM_STABLE)), RUNNING_TORCH
        accepted = re.escape(f"a string from '{oldest}' to the installed release, '{newest}'")
        with pytest.raises(ValueError, match=rf"^stable must .*{accepted}, .*got {re.escape(repr(value))}$"):
            Extension("m", ["m.pyx"], stable=value)

    @pytest.mark.parametrize("value", ["cp310", "cp399", "3.11", "cp311t", "abi3", "cp31\u0661", "", 311, True])
    def test_pythons_that_are_none(self, value):
        accepted = rf"a string from 'cp311' to '{RUNNING_PYTHON}'"
        with pytest.raises(ValueError, match=rf"^py_limited_api must .*{accepted}, .*got {re.escape(repr(value))}$"):
            Extension("m", ["m.pyx"], stable="2.11", py_limited_api=value)

    def test_the_limited_api_alone(self):
        with pytest.raises(ValueError, match="py_limited_api must be left out without stable, got 'cp311'"):
            Extension("m", ["m.pyx"], py_limited_api="cp311")

    def test_cuda(self):
        with pytest.raises(ValueError, match=r"sources must have no \.cu files with stable, .* yet, got k\.cu"):
            Extension("m", ["m.pyx", "k.cu"], stable="2.11")

    @needs_limited_api
    def test_the_bounds_are_accepted(self):
        assert stable_abi(RUNNING_TORCH, RUNNING_PYTHON) == StableABI(RUNNING_TORCH, RUNNING_PYTHON)
        assert stable_abi("2.11", "cp311") == StableABI("2.11", "cp311")

    def test_what_is_compiled_and_linked(self, monkeypatch):
        monkeypatch.delenv("CFLAGS", raising=False)
        extension = Extension(
            "m", ["m.pyx"], stable="2.11", include_dirs=["mine"], define_macros=[("A", "1")], extra_compile_args=["-O3"]
        )
        assert extension.extra_compile_args == ["-std=c++20", "-fvisibility=hidden", "-O2", "-O3"]
        assert extension.include_dirs == [
            str(Path(get_stable_dir(), "include")),
            interop.get_include(),
            "mine",
            str(Path(torch.__file__).parent / "include"),
        ]
        assert extension.libraries == extension.library_dirs == []
        assert [Path(path).name for path in extension.extra_objects] == [f"lib{STABLE_LIBRARY}.a"]
        assert ("A", "1") in extension.define_macros
        assert of_macros(extension.define_macros) == StableABI("2.11")

    def test_macros(self):
        assert dict(StableABI("2.11", "cp312").macros) == {
            "TORCH_TARGET_VERSION": "0x020b000000000000",
            "TORCH_STABLE_ONLY": None,
            "INTEROP_STABLE": '"2.11"',
            "Py_LIMITED_API": "0x030c0000",
            "INTEROP_LIMITED_API": '"cp312"',
        }


class TestDistribution:
    def test_one_file(self):
        """It has no bootstrap, and without the Limited API the ordinary suffix."""
        command = finalized(stable("package.module")).get_command_obj("build_ext")
        (extension,) = command.extensions
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        assert command.get_ext_filename(extension.name) == os.path.join("package", f"module{suffix}")

    @needs_limited_api
    def test_the_suffix_of_the_limited_api(self):
        command = finalized(stable("package.module", python="cp312")).get_command_obj("build_ext")
        assert command.get_ext_filename("package.module") == os.path.join("package", "module.abi3.so")

    @pytest.mark.parametrize(
        ("extensions", "tag"),
        [
            ([("a", "cp311"), ("b", "cp312")], "cp312"),
            ([("a", "cp39"), ("b", "cp312")], "cp312"),  # not in string order
            ([("a", "cp312"), ("b", None)], False),
            ([], False),
        ],
    )
    def test_the_tag(self, extensions, tag):
        distribution = finalized(*(stable(name, python=python) for name, python in extensions))
        assert distribution.get_command_obj("bdist_wheel").py_limited_api == tag

    def test_the_tag_of_a_mixed_project(self):
        distribution = finalized(stable(python="cp312"), plain())
        assert distribution.get_command_obj("bdist_wheel").py_limited_api is False

    @pytest.mark.parametrize(
        ("required", "result"),
        [
            ([], ["torch>=2.13"]),
            (["numpy>=2"], ["numpy>=2", "torch>=2.13"]),
            (["Torch!=2.12"], ["Torch!=2.12"]),
            (["torch-interop", "torchvision"], ["torch-interop", "torchvision", "torch>=2.13"]),
        ],
    )
    def test_torch_is_required(self, in_folder, required, result):
        distribution = finalized(stable("a"), plain(), stable("b", torch="2.13"), install_requires=required)
        assert distribution.install_requires == result

    def test_torch_is_not_required_of_others(self, in_folder):
        assert finalized(plain()).install_requires == []

    def test_what_pyproject_says_stays(self, in_folder, capsys):
        """A build must not change it. It prints advice, because nobody would notice metadata without torch."""
        (in_folder / "pyproject.toml").write_text("[project]\nname = 'project'\nversion = '1'\n")
        assert finalized(stable()).install_requires == []
        assert "add 'torch>=2.11' to the dependencies in pyproject.toml" in capsys.readouterr().out

    def test_what_pyproject_leaves_open(self, in_folder):
        (in_folder / "pyproject.toml").write_text("[project]\nname = 'project'\ndynamic = ['dependencies']\n")
        assert finalized(stable()).install_requires == ["torch>=2.11"]


@needs_limited_api
@pytest.mark.long
@pytest.mark.extended
class TestWheel:
    def test_tag_and_metadata(self, wheel):
        assert re.fullmatch(r"stable_build-0\.1\.0-cp311-abi3-linux_\w+\.whl", wheel.name)
        site = wheel.parent / "site"
        metadata = (site / "stable_build-0.1.0.dist-info" / "METADATA").read_text()
        assert re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE) == ["torch>=2.11"]
        assert [path.name for path in (site / "stable_build").glob("*.so")] == ["ops.abi3.so"]

    def test_what_it_is_compiled_with(self, wheel, bare):
        """Cython's C++ and the user's own source get the macros."""
        said = eval(bare("from stable_build import ops; print(ops.compiled_with())", wheel.parent / "site"))
        assert said == {
            "target": "0x20b000000000000",
            "other source": "0x20b000000000000",
            "limited": True,
            "python": "0x30b0000",
            "texts": ["2.11", "cp311"],
        }

    def test_it_runs_without_this_package(self, wheel, bare):
        code = """if 1:
            import sys
            sys.modules["interop"] = None
            assert "torch" not in sys.modules
            from stable_build import ops
            import array
            x = sys.modules["torch"].ones(3, requires_grad=True)
            ops.twice(x).sum().backward()
            print(x.grad.tolist(), ops.total(array.array("d", [1, 2, 3])))
        """
        assert bare(code, wheel.parent / "site") == "[2.0, 2.0, 2.0] 6.0\n"

    def test_what_it_needs_and_offers(self, module):
        """It needs no library of torch and no folder of this machine, and exports nothing but its entry point."""
        with module.open("rb") as file:
            elf = ELFFile(file)
            dynamic = list(elf.get_section_by_name(".dynamic").iter_tags())
            symbols = list(elf.get_section_by_name(".dynsym").iter_symbols())
        tags = {tag.entry.d_tag for tag in dynamic}
        needed = [tag.needed for tag in dynamic if tag.entry.d_tag == "DT_NEEDED"]
        assert not [name for name in needed if re.match(r"lib(c10|torch|python)", name)]
        if "-rpath" not in sysconfig.get_config_var("LDSHARED"):  # if it is, all modules of this Python have one
            assert not tags & {"DT_RPATH", "DT_RUNPATH"}
        offered = [
            symbol.name
            for symbol in symbols
            if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] != "STB_LOCAL"
        ]
        assert offered == ["PyInit_ops"]

    def test_abi3audit(self, wheel):
        run([TOOLS / "abi3audit", "--strict", wheel])

    def test_abi3audit_notices(self, module):
        """It rejects the same file for a CPython older than the file's."""
        command = [TOOLS / "abi3audit", "--strict", "--assume-minimum-abi3", "3.10", module]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert done.returncode == 1
        assert "1 ABI version mismatches" in re.sub(r"\s+", " ", done.stdout + done.stderr)

    def test_torch_abi_audit(self, module):
        output = run([TOOLS / "torch-abi-audit", "--check", "both", module])
        assert re.search(r"Torch ABI: +STABLE", output)
        assert re.search(r"Min torch: +2\.11\.0", output)
        assert re.search(r"CPython ABI: +abi3", output)

    def test_the_doctor_recognises_it(self, module):
        findings = {finding.subject: finding for finding in examine_module(module)}
        assert {finding.level for finding in findings.values()} == {Level.OK}
        assert findings["torch"].text.startswith("stable, torch >= 2.11, abi3 cp311, compiled by")
        assert findings["import"].text == "stable_build.ops can be imported without importing torch first"

    def test_torch_abi_audit_notices(self):
        """It rejects a module that uses ATen."""
        command = [TOOLS / "torch-abi-audit", "--check", "torch", _core.__file__]
        assert subprocess.run(command, capture_output=True, timeout=100).returncode == 1


SHAPES = """
cimport ATen as at
from torch.library cimport define, impl

cdef at.Tensor twice(const at.Tensor& x) except * nogil:
    return at.add(x, x)
cdef at.Tensor of_sizes(const at.Tensor& x) except * nogil:
    return at.empty((x.size(0), x.size(1)), x.options())

define("stable_shapes::of_operators", "(Tensor x) -> Tensor")
impl("stable_shapes::of_operators", "CPU", twice)
impl("stable_shapes::of_operators", "Meta", twice)
define("stable_shapes::of_sizes", "(Tensor x) -> Tensor")
impl("stable_shapes::of_sizes", "CPU", twice)
impl("stable_shapes::of_sizes", "Meta", of_sizes)
define("stable_shapes::in_python", "(Tensor x) -> Tensor")
impl("stable_shapes::in_python", "CPU", twice)
"""


@pytest.mark.unchecked(by="leaks", reason="torch keeps what it compiled")
def test_a_fake_kernel_for_any_size():
    """It is made of operators, or written in Python. A kernel that reads sizes is compiled again for each."""
    interop.load_inline(SHAPES, name="stable_shapes", stable="2.11")
    torch.library.register_fake("stable_shapes::in_python", lambda x: x.new_empty(x.shape))

    def check(name):
        check_dynamic_shapes(getattr(torch.ops.stable_shapes, name), lambda n: (torch.randn(n, n + 1),))

    check("of_operators")
    check("in_python")
    with pytest.raises(AssertionError, match="recompiled for the arguments of size"):
        check("of_sizes")


PRODUCT = """
cimport ATen as at
from torch.library cimport define, impl, register_autograd
import torch

cdef at.Tensor product(const at.Tensor& a, const at.Tensor& b, double s) except * nogil:
    return at.mul(at.mm(a, b), s)

cdef at.Tensor shape(const at.Tensor& a, const at.Tensor& b, double s) except * nogil:
    return at.mm(a, b)

def setup_context(ctx, inputs, output):
    a, b, ctx.s = inputs
    ctx.save_for_backward(a, b)

def backward(ctx, grad):
    a, b = ctx.saved_tensors
    product = torch.ops.stable_graphs.product
    return product(grad, b.t(), ctx.s), product(a.t(), grad, ctx.s), None

define("stable_graphs::product", "(Tensor a, Tensor b, float s) -> Tensor")
impl("stable_graphs::product", "CPU", product)
impl("stable_graphs::product", "Meta", shape)
register_autograd("stable_graphs::product", backward, setup_context)
"""


@pytest.fixture(scope="module")
def product(jit_cache):
    """An operator with a gradient."""
    interop.load_inline(PRODUCT, name="stable_graphs", stable="2.11")
    return torch.ops.stable_graphs.product


@pytest.mark.unchecked(by="leaks", reason="torch keeps what it compiled")
class TestGraphs:
    """A registered gradient that is compiled with the operator, of any size."""

    @pytest.fixture
    def arguments(self):
        return torch.randn(4, 5, requires_grad=True), torch.randn(5, 3, requires_grad=True), 3.0

    @staticmethod
    def loss(product, a, b, s):
        return (product(a, b, s) + 1).sin().sum()

    def expected(self, a, b, s):
        return torch.autograd.grad(self.loss(lambda a, b, s: s * (a @ b), a, b, s), (a, b))

    def test_any_size(self, product):
        """Once, forward and backward."""
        check_dynamic_shapes(
            product,
            lambda n: (torch.randn(n, n + 1, requires_grad=True), torch.randn(n + 1, 3, requires_grad=True), 2.0),
        )

    @pytest.mark.slow
    def test_inductor(self, product, arguments):
        compiled = torch.compile(partial(self.loss, product), fullgraph=True, dynamic=True)
        found = torch.autograd.grad(compiled(*arguments), arguments[:2])
        torch.testing.assert_close(found, self.expected(*arguments))

    def test_compiled_autograd(self, product, arguments):
        """The gradient, a compiled function, is called outside of the graph."""
        a, b, _ = arguments
        with torch._dynamo.compiled_autograd._enable(torch.compile(backend="aot_eager")):
            self.loss(product, *arguments).backward()
        torch.testing.assert_close((a.grad, b.grad), self.expected(*arguments))
        with (
            torch._dynamo.compiled_autograd._enable(torch.compile(backend="aot_eager", fullgraph=True)),
            pytest.raises(torch._dynamo.exc.Unsupported),
        ):
            self.loss(product, *arguments).backward()


@pytest.mark.long
class TestTranslation:
    def test_a_module_for_one_release(self, in_folder):
        (in_folder / "one.pyx").write_text("x = 1\ncimport torch.stable as st\n")
        with pytest.raises(TranslationError, match="not found") as raised:
            cythonize(Extension("one", ["one.pyx"]))
        assert (raised.value.filename, raised.value.lineno) == ("one.pyx", 2)
        assert "stable='2.11'" in raised.value.diagnostics[0].hint

    def test_one_source_for_one_release_and_for_many(self, in_folder):
        """Both work in one process, although Cython caches what it knows of a source."""
        (in_folder / "both.pyx").write_text("x = 1\n")
        options = [{}, {"stable": "2.11"}, {"stable": "2.11", "extra_link_args": ["-s"]}]
        for number in (0, 1, 2, 0):
            extension = Extension("both", ["both.pyx"], **options[number])
            expected = {key: list(getattr(extension, key)) for key in ("define_macros", "libraries", "extra_link_args")}
            expected["extra_compile_args"] = list(extension.extra_compile_args)
            (translated,) = cythonize(extension, build_dir=str(number))
            assert {key: getattr(translated, key) for key in expected} == expected

    @pytest.mark.parametrize("together", [True, False])
    @pytest.mark.parametrize("folder", [None, "generated"])
    def test_both_in_one_project(self, in_folder, together, folder):
        """Each has a C++ file of its own, beside the source or in a folder."""
        (in_folder / "both.pyx").write_text("cimport torch\ndef f(torch.Tensor x not None): return x\n")
        extensions = [Extension("one", ["both.pyx"]), Extension("many", ["both.pyx"], stable="2.11")]
        calls = [extensions] if together else [[extension] for extension in extensions]
        translated = [one for call in calls for one in cythonize(call, build_dir=folder)]
        texts = [Path(one.sources[0]).read_text() for one in translated]
        for text, name in zip(texts, ("one", "many"), strict=True):
            assert f"PyInit_{name}(" in text


@pytest.mark.long
class TestDeclarations:
    @pytest.mark.extended
    def test_all_that_there_are_in_any_order(self, in_folder):
        """Each brings its own header, and none brings torch's C++."""
        files = [path.relative_to(PXD).with_suffix("") for path in sorted(PXD.rglob("*.pxd"))]
        names = [
            file.as_posix().removesuffix("/__init__").replace("/", ".")
            for file in files
            if not any(file.is_relative_to(one) for one in OF_ONE_RELEASE)
        ]
        assert {"torch.library", "interop.lists", "ATen.Parallel"} <= set(names)
        for module, listed in (("forth", names), ("back", names[::-1])):
            Path(f"{module}.pyx").write_text("".join(f"cimport {name}\n" for name in listed))
            run([sys.executable, TESTS / "cython" / "surface" / "compile.py", f"{module}.pyx", "2.11"])

    def test_those_of_one_release_are_there_and_not_here(self):
        here = Path(get_stable_dir(), "pxd")
        for one in OF_ONE_RELEASE:
            assert (PXD / one).is_dir() or (PXD / f"{one}.pxd").exists(), one
            assert not (here / one).exists(), one
            assert not (here / f"{one}.pxd").exists(), one

    @pytest.mark.parametrize(
        ("line", "name"),
        [
            ("from interop cimport elementwise", "interop.elementwise"),
            ("from interop cimport indices", "interop.indices"),
            ("cimport ATen.TensorIterator", "ATen.TensorIterator"),
            ("from torch.autograd cimport Context", "torch.autograd.Context"),
        ],
    )
    def test_what_is_not_there(self, jit_cache, line, name):
        with pytest.raises(BuildError, match=rf"hint: modules for many releases of torch have no {name}: "):
            interop.load_inline(f"{line}\n", stable="2.11")

    @pytest.mark.extended
    def test_an_operator_that_is_not_there(self, jit_cache):
        source = "cimport ATen as at\n\n\ndef f():\n    return at.{}()\n"
        name = "_scaled_dot_product_flash_attention"  # torch returns a SymInt from it
        with pytest.raises(BuildError, match=f"modules for many releases of torch have no at.{name}: build .* without"):
            interop.load_inline(source.format(name), stable="2.11")
        with pytest.raises(BuildError, match="ATen has no 'no_such_operator'"):
            interop.load_inline(source.format("no_such_operator"), stable="2.11")

    @pytest.mark.parametrize("options", [{}, {"py_limited_api": "cp311"}], ids=str)
    def test_scalars(self, jit_cache, options):
        """Each kind of number becomes the same scalar as in a module for one release."""
        if FREE_THREADED and options:
            pytest.skip("a free-threaded CPython has no Limited API")
        module = interop.load_inline(SCALARS, stable="2.11", **options)
        x = torch.arange(3)
        for number in (2, 2.5, True, 2 + 1j, 2**63):
            result = module.times(x, number) if number != 2**63 else None
            assert result is None or (result.equal(x * number) and result.dtype == (x * number).dtype)
            assert module.same(number, number)
            assert not module.same(number, 3)
        assert not module.same(True, 1)
        assert module.of_c(x).dtype == torch.complex64
        with pytest.raises(
            TypeError, match=r"argument 'value' must be bool, .* got (torch\.)?Tensor; read a tensor out"
        ):
            module.times(x, x)
        with pytest.raises(OverflowError, match="must be an int of 64 bits"):
            module.times(x, -(2**64))

    def test_conditions(self, jit_cache):
        """Each raises the same class as in a module for one release, from a function and from a kernel."""
        module = interop.load_inline(CONDITIONS, name="interop_conditions", stable="2.11")
        x = torch.ones(2, 3)
        for call in (module.checked, torch.ops.interop_conditions.checked):
            assert torch.equal(call(x, 9), x)
            for what, (kind, message) in enumerate(
                [
                    (RuntimeError, "sizes [2, 3] of Float on cpu"),
                    (IndexError, "index 1"),
                    (TypeError, "a type"),
                    (ValueError, "not 0.5"),
                    (NotImplementedError, "only that"),
                    (torch.linalg.LinAlgError, "singular"),
                ]
            ):
                with pytest.raises(kind) as raised:
                    call(x, what)
                assert (raised.type, str(raised.value)) == (kind, message)

    @pytest.mark.extended
    def test_a_function_of_a_name_of_ours(self, in_folder):
        Path("m.pyx").write_text(
            "cimport interop\ncimport ATen as at\ncimport torch\n"
            "cdef double scalar(double x) noexcept nogil: return x\ndef f(): return scalar(1)\n"
        )
        run([sys.executable, TESTS / "cython" / "surface" / "compile.py", "m.pyx", "2.11"])

    @pytest.mark.extended
    def test_a_method_of_the_name_of_a_function_that_is_not_there(self, in_folder):
        Path("m.pyx").write_text(
            "cimport ATen as at\ncimport interop\ncdef at.Tensor t\ndef f(): return t.indices().dim()\n"
        )
        run([sys.executable, TESTS / "cython" / "surface" / "compile.py", "m.pyx", "2.11"])


@pytest.mark.long
class TestLoad:
    SOURCE = """
    cimport ATen as at
    cimport torch
    cdef extern from *:
        const char* INTEROP_STABLE
    def oldest():
        return INTEROP_STABLE.decode()
    def twice(torch.Tensor x not None):
        return torch.wrap(at.add(x.cdata, x.cdata))
    """

    @pytest.fixture
    def cache(self, tmp_path, monkeypatch):
        """An empty cache."""
        monkeypatch.setenv("INTEROP_CACHE_DIR", str(tmp_path / "cache"))

    def test_a_kernel_of_an_int_and_of_a_bool(self, cache):
        """A C int is either in a schema. The kernel cannot know for which of two operators it is called."""
        source = (
            "cimport ATen as at\nfrom torch.library cimport define, impl\n"
            "cdef int five(const at.Tensor& x) except * nogil: return 5\n"
            'define("interop_two::count", "(Tensor x) -> int")\ndefine("interop_two::any", "(Tensor x) -> bool")\n'
            'impl("interop_two::count", "CPU", five)\n'
        )
        interop.load_inline(source, name="interop_two", stable="2.11")
        assert torch.ops.interop_two.count(torch.ones(1)) == 5
        with pytest.raises(TypeError, match=r"interop_two2::any: .*write a kernel for each"):
            interop.load_inline(
                source.replace("interop_two", "interop_two2") + 'impl("interop_two2::any", "CPU", five)\n',
                name="interop_two2",
                stable="2.11",
            )

    def test_one_file_and_nothing_precompiled(self, cache):
        module = interop.load_inline(self.SOURCE, stable="2.11")
        assert module.oldest() == "2.11"
        assert module.twice(torch.ones(2)).tolist() == [2, 2]
        folder = Path(module.__file__).parent
        assert [path.name for path in folder.glob("*.so")] == [Path(module.__file__).name]
        assert module.__file__.endswith(sysconfig.get_config_var("EXT_SUFFIX"))
        assert {path.name for path in root().iterdir()}.isdisjoint({"headers", "support"})

    def test_it_is_found_again(self, cache):
        """Only the same arguments find it."""
        first = interop.load_inline(self.SOURCE, name="found_again", stable="2.11")
        assert interop.load_inline(self.SOURCE, name="found_again", stable="2.11") is first
        given = [{}, {"stable": "2.11"}, {"stable": "2.12"}, {"stable": "2.11", "py_limited_api": "cp311"}]
        keys = {Target("found_again", ("m.pyx",), {"m.pyx": self.SOURCE}, options=options).key() for options in given}
        assert len(keys) == len(given)

    def test_a_module_that_is_loaded_anew_replaces_what_it_registered(self, cache):
        """As in a notebook, the same module is loaded from a changed source, with another schema."""
        source = textwrap.dedent("""\
            cimport ATen as at
            from libc.stdint cimport int64_t
            from torch.library cimport define, impl
            cdef at.Tensor kernel(const at.Tensor& x{parameter}) except * nogil: return at.mul(x, {number})
            define("interop_reload_stable::f", "(Tensor x{argument}) -> Tensor")
            impl("interop_reload_stable::f", "CPU", kernel)
            """)
        ops, x, kept = torch.ops.interop_reload_stable, torch.ones(1), []
        for parameter, argument, number, given in (("", "", 2, ()), (", int64_t n", ", int n", "n", (5,))):
            text = source.format(parameter=parameter, argument=argument, number=number)
            interop.load_inline(text, name="again_stable", stable="2.11")
            assert ops.f(x, *given).item() == (*given, 2)[0]
            assert str(ops.f.default._schema) == f"interop_reload_stable::f(Tensor x{argument}) -> Tensor"
            kept.append(ops.f.default)
        assert [overload(x, 5).item() for overload in kept] == [5, 5]  # by now, the first one's operator is gone

    @needs_limited_api
    def test_the_limited_api(self, cache):
        module = interop.load_inline(self.SOURCE, stable="2.11", py_limited_api="cp311")
        assert module.__file__.endswith(".abi3.so")
        assert module.oldest() == "2.11"

    def test_a_cell_of_a_notebook(self, notebook):
        cell = "def oldest(): return INTEROP_STABLE.decode()\n"
        notebook.run(f"%%torch_cython --stable 2.11\ncdef extern from *:\n    const char* INTEROP_STABLE\n{cell}")
        assert notebook.run("oldest()") == "'2.11'"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"stable": "2.9"}, r"stable must be .*, got '2\.9'"),
            ({"py_limited_api": "cp311"}, "py_limited_api must be left out without stable"),
            ({"stable": "2.11", "py_limited_api": "cp39"}, "py_limited_api must be .*, got 'cp39'"),
        ],
    )
    def test_wrong_arguments(self, cache, options, message):
        with pytest.raises(ValueError, match=message):
            interop.load_inline(self.SOURCE, **options)
