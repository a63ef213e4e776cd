"""Building CUDA modules: the values of INTEROP_CUDA, and the messages if nvcc cannot compile them."""

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import setuptools.errors
import torch
from conftest import TESTS, run

from interop.build import Extension
from interop.build.cuda import Cuda, Toolkit, compile_cuda, cuda

MODULE = """
from interop.cuda cimport Launch

cdef extern from *:
    "extern \\"C\\" int touch(void*);"
    int touch(void* stream) noexcept nogil

def launch():
    cdef Launch launch = Launch()
    launch.check(touch(NULL), b"touch")
"""
KERNEL = """
#include "interop/cuda/launch.cuh"
#include "number.h"

__global__ void kernel(int) {}

extern "C" int touch(void* stream) {
  return interop::cuda::launch(kernel, 1, 32, stream, NUMBER);
}
"""
SETUP = """
from setuptools import setup
from interop.build import BuildExtension, Extension

setup(
    name="project",
    ext_modules=[Extension("touching", ["touching.pyx", "kernel.cu"], include_dirs=["."])],
    cmdclass={"build_ext": BuildExtension},
)
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for variable in ("TORCH_CUDA_ARCH_LIST", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    files = {"touching.pyx": MODULE, "kernel.cu": KERNEL, "number.h": "#define NUMBER 1\n", "setup.py": SETUP}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def build(check=True, **environment):
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )
    if check:
        assert not done.returncode, done.stdout + done.stderr
    return done.stdout + done.stderr


def fake_nvcc(folder, version="12.4", output="#$ TOP={}"):
    """An nvcc that prints a version and its location, and compiles nothing."""
    (folder / "bin").mkdir(parents=True)
    script = folder / "bin" / "nvcc"
    script.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = --version ]; then echo "Cuda compilation tools, release {version}, V{version}.0"; exit; fi\n'
        f'if [ "$1" = --list-gpu-arch ]; then echo compute_75; exit; fi\n'
        f"echo '{output.format(folder)}' >&2\n"
    )
    script.chmod(0o755)
    return folder


@pytest.fixture
def mode(monkeypatch):
    def choose(value, **environment):
        for name in ("CUDA_HOME", "CUDA_PATH"):
            monkeypatch.delenv(name, raising=False)
        if value is None:
            monkeypatch.delenv("INTEROP_CUDA", raising=False)
        else:
            monkeypatch.setenv("INTEROP_CUDA", value)
        for name, text in environment.items():
            monkeypatch.setenv(name, str(text))

    return choose


class TestModes:
    """The tests pass torch's CUDA version to `cuda`, because a machine has only one torch."""

    def test_off(self, mode):
        mode("0")
        assert str(cuda("13.0")) == "CUDA off: INTEROP_CUDA=0"

    @pytest.mark.parametrize("value", [None, "", "auto"])
    def test_auto_with_a_torch_without_cuda(self, mode, value):
        mode(value)
        text = str(cuda(None))
        assert text.startswith(f"CUDA off: torch {torch.__version__} is built without CUDA; install a torch with CUDA")
        assert "INTEROP_CUDA=compile" in text
        assert "\n" not in text

    def test_auto_with_the_same_major_version(self, mode, tmp_path):
        mode("auto", CUDA_HOME=fake_nvcc(tmp_path / "cuda", "12.8"))
        assert str(cuda("12.4")).startswith(f"CUDA on: nvcc 12.8 in {tmp_path / 'cuda'}, torch ")

    def test_another_major_version(self, mode, tmp_path):
        mode("auto", CUDA_HOME=fake_nvcc(tmp_path / "cuda", "12.8"))
        text = str(cuda("13.0"))
        assert text.startswith("CUDA off: torch ")
        assert "for CUDA 13.0, but nvcc 12.8" in text
        assert "set CUDA_HOME to a CUDA 13.0" in text
        mode("1", CUDA_HOME=tmp_path / "cuda")
        with pytest.raises(
            setuptools.errors.PlatformError, match=r"INTEROP_CUDA=1, but torch .* another major version"
        ):
            cuda("13.0")

    def test_compile_takes_any(self, mode, tmp_path):
        mode("compile", CUDA_HOME=fake_nvcc(tmp_path / "cuda", "12.8"))
        assert str(cuda(None)).startswith("CUDA on: nvcc 12.8 in ")

    def test_1_with_a_torch_without_cuda(self, mode):
        mode("1")
        with pytest.raises(
            setuptools.errors.PlatformError, match=r"INTEROP_CUDA=1, but torch .* is built without CUDA"
        ):
            cuda(None)

    @pytest.mark.parametrize("value", ["1", "compile"])
    def test_no_nvcc(self, mode, value, tmp_path):
        mode(value, PATH=tmp_path)
        with pytest.raises(
            setuptools.errors.PlatformError,
            match=rf"INTEROP_CUDA={value}, but there is no nvcc on PATH; install CUDA's compiler and add it to PATH",
        ):
            cuda("13.0")
        mode("auto", PATH=tmp_path)
        assert str(cuda("13.0")).startswith("CUDA off: there is no nvcc on PATH")

    def test_cuda_home_without_nvcc(self, mode, tmp_path):
        mode("1", CUDA_HOME=tmp_path)
        with pytest.raises(
            setuptools.errors.PlatformError,
            match=rf"but {tmp_path}/bin/nvcc does not run .*; correct CUDA_HOME, or unset",
        ):
            cuda("13.0")

    def test_something_else_called_nvcc(self, mode, tmp_path):
        mode("1", CUDA_HOME=fake_nvcc(tmp_path / "cuda", output="nothing"))
        with pytest.raises(setuptools.errors.PlatformError, match="nvcc is not nvcc"):
            cuda("13.0")

    def test_a_script_that_starts_nvcc_elsewhere(self, mode, tmp_path):
        mode("compile", CUDA_HOME=fake_nvcc(tmp_path / "wrapper", output=f"#$ TOP={tmp_path}/real/bin/.."))
        assert cuda(None).toolkit.home == tmp_path / "real"

    @pytest.mark.parametrize("value", ["yes", "2", "AUTO"])
    def test_another_word(self, mode, value):
        mode(value)
        with pytest.raises(
            setuptools.errors.PlatformError, match=f"INTEROP_CUDA must be one of auto, 0, 1, compile, got '{value}'"
        ):
            cuda(None)

    def test_it_says_one_line(self):
        assert str(Cuda("reason")) == "CUDA off: reason"


@pytest.mark.usefixtures("toolkit", "project")
@pytest.mark.slow
class TestBuild:
    def test_it_is_compiled_once(self, project):
        """A kernel is compiled once, and again when a header that it includes changes."""
        output = build(INTEROP_CUDA="compile")
        assert len(re.findall(r"^interop: CUDA on: nvcc ", output, re.MULTILINE)) == 1
        assert "-c " in output
        assert "nvcc -std=c++20" in output
        assert "nvcc -std=c++20" not in build(INTEROP_CUDA="compile")
        (project / "number.h").write_text("#define NUMBER 2\n")
        assert "nvcc -std=c++20" in build(INTEROP_CUDA="compile")

    def test_left_out(self, project):
        output = build(INTEROP_CUDA="0")
        assert "interop: CUDA off: INTEROP_CUDA=0\ninterop: module 'touching' is left out\n" in output
        done = subprocess.run([sys.executable, "-c", "import touching"], capture_output=True, text=True)
        assert (
            "ImportError: module 'touching' was left out when its project was built: CUDA off: INTEROP_CUDA=0"
            in done.stderr
        )

    def test_what_is_left_out_belongs_to_the_sdist(self, project):
        run([sys.executable, "setup.py", "sdist", "--quiet"], cwd=project, env=os.environ | {"INTEROP_CUDA": "0"})
        (archive,) = project.glob("dist/*.tar.gz")
        with tarfile.open(archive) as file:
            names = {Path(name).name for name in file.getnames()}
        assert {"touching.pyx", "kernel.cu"} <= names

    def test_1_fails(self):
        if torch.version.cuda is not None:
            pytest.skip("torch is built with CUDA")
        output = build(check=False, INTEROP_CUDA="1")
        assert re.search(r"^error: INTEROP_CUDA=1, but torch \S+ is built without CUDA; install", output, re.MULTILINE)
        assert "Traceback" not in output

    def test_a_source_that_is_not_there(self, project):
        (project / "kernel.cu").unlink()
        assert "error: kernel.cu, a source of " in build(check=False, INTEROP_CUDA="compile")

    def test_names_stay_in_their_module(self, project):
        """Symbols are hidden, also static variables of templates, which all modules of the process would share."""
        (project / "kernel.cu").write_text(
            KERNEL + "template <class T> T& counter() { static T value = 0; return value; }\n"
            'extern "C" int count() { return ++counter<int>(); }\n'
        )
        build(INTEROP_CUDA="compile")
        (compiled,) = project.glob("build/**/kernel.cu.o")
        (module,) = project.glob("_touching_*.so")
        names = [line.split() for line in run(["readelf", "--wide", "--symbols", compiled]).splitlines()]
        visible = {fields[-1]: fields[-3] for fields in names if len(fields) == 8 and fields[-2] != "UND"}
        ours = [name for name in visible if name in ("touch", "count") or "counter" in name]
        assert len(ours) > 2
        assert {visible[name] for name in ours} == {"HIDDEN"}
        assert not re.search(
            r" (touch|count|\w*7counter\w*)$", run(["readelf", "--wide", "--dyn-syms", module]), re.MULTILINE
        )

    def test_a_launcher_that_nobody_defines(self, project):
        (project / "kernel.cu").write_text("")
        build(INTEROP_CUDA="compile")
        done = subprocess.run([sys.executable, "-c", "import touching"], capture_output=True, text=True)
        assert "undefined symbol: touch). No source of the module defines that function" in done.stderr

    def test_an_error_of_nvcc(self, project):
        (project / "kernel.cu").write_text(KERNEL.replace("NUMBER", "MISSING"))
        output = build(check=False, INTEROP_CUDA="compile")
        assert re.search(r'kernel\.cu\(\d+\): error: identifier "MISSING" is undefined', output)
        assert re.search(r"^error: nvcc failed; its output is above", output, re.MULTILINE)

    @pytest.mark.parametrize(
        ("architectures", "message"),
        [
            ("3.7", r"needs sm_37, which nvcc [\d.]+ cannot compile for; it supports .*\. Set TORCH_CUDA_ARCH_LIST"),
            ("9.0;5.0", r"needs sm_50, which nvcc"),
            ("nonsense", r"TORCH_CUDA_ARCH_LIST='nonsense': Unknown CUDA arch \(nonsense\)"),
        ],
    )
    def test_architectures_that_cannot_be(self, architectures, message):
        output = build(check=False, INTEROP_CUDA="compile", TORCH_CUDA_ARCH_LIST=architectures)
        assert re.search(message, output)
        assert "Traceback" not in output

    def test_architectures(self):
        output = build(INTEROP_CUDA="compile", TORCH_CUDA_ARCH_LIST="8.0;9.0+PTX")
        for flag in ("compute_80,code=sm_80", "compute_90,code=sm_90", "compute_90,code=compute_90"):
            assert f"-gencode=arch={flag}" in output

    def test_two_files_of_one_name(self, project):
        (project / "other").mkdir()
        (project / "other" / "kernel.cu").write_text(KERNEL)
        (project / "setup.py").write_text(SETUP.replace('"kernel.cu"', '"kernel.cu", "other/kernel.cu"'))
        output = build(check=False, INTEROP_CUDA="compile")
        assert "error: the .cu files of " in output
        assert "must have different names" in output

    def test_flags_of_the_user_for_nvcc(self, project):
        (project / "setup.py").write_text(
            SETUP.replace(
                'include_dirs=["."]',
                'include_dirs=["."], define_macros=[("MINE", "3")], extra_compile_args={"nvcc": ["-lineinfo", '
                '"-arch=sm_80"]}',
            )
        )
        output = build(INTEROP_CUDA="compile", TORCH_CUDA_ARCH_LIST="9.0")
        (command,) = re.findall(r"nvcc -std=c\+\+20.*", output)
        assert "-DMINE=3" in command
        assert "-lineinfo -arch=sm_80" in command
        assert "-gencode" not in command

    def test_a_module_that_only_asks_for_streams(self, project):
        """The module builds with any torch. It uses CUDA's own headers if torch has CUDA and there is an nvcc."""
        (project / "touching.pyx").write_text(
            "from c10.cuda cimport getCurrentCUDAStream\ndef stream(): return getCurrentCUDAStream().id()\n"
        )
        (project / "setup.py").write_text(SETUP.replace(', "kernel.cu"', ""))
        output = build(INTEROP_CUDA="auto")
        assert ("interop: CUDA" in output) == (torch.version.cuda is not None)
        assert ("-DINTEROP_WITH_CUDA" in output) == ("interop: CUDA on" in output)

    def test_a_module_without_cuda_says_nothing_of_it(self, project):
        (project / "touching.pyx").write_text("def nothing(): pass\n")
        (project / "setup.py").write_text(SETUP.replace(', "kernel.cu"', ""))
        assert "CUDA" not in build(INTEROP_CUDA="nonsense")

    def test_paths_with_spaces(self, project, monkeypatch):
        """Paths may contain spaces. ($NAME is not tested, because nvcc itself expands it as a variable.)"""
        folder = project / "a folder"
        folder.mkdir()
        for name in ("touching.pyx", "kernel.cu", "number.h", "setup.py"):
            (project / name).rename(folder / name)
        monkeypatch.chdir(folder)
        build(INTEROP_CUDA="compile")
        assert list(folder.glob("touching.*.so"))


@pytest.mark.slow
class TestGuide:
    """The code of docs/cuda-guide.md compiles, can be imported, and is called as far as possible without a GPU."""

    @pytest.mark.usefixtures("toolkit")
    def test_it_builds_and_says_what_is_wrong(self, tmp_path):
        page = (TESTS.parent / "docs" / "cuda-guide.md").read_text(encoding="utf-8")
        kernels, headers, modules = (blocks(page, language) for language in ("cuda", "cpp", "cython"))
        names = ("swish_kernel", "add_row")
        for name, kernel, header in zip(names, kernels, headers, strict=True):
            (tmp_path / f"{name}.cu").write_text(kernel)
            (tmp_path / f"{name}.h").write_text(header)
        for name, module in zip(("swish", "rows"), modules, strict=True):
            (tmp_path / f"{name}.pyx").write_text(module)
        setup, fake = blocks(page, "python")
        names = {"torch": torch}
        exec(fake, names)
        assert names["x"].is_cuda
        for text in (setup, setup.replace('"swish', '"rows').replace('"rows_kernel.cu"', '"add_row.cu"')):
            (tmp_path / "setup.py").write_text(text)
            run([sys.executable, "setup.py", "build_ext", "--inplace"], cwd=tmp_path)
        code = (
            "import torch, rows, swish\n"
            "x = torch.zeros(2)\n"
            "for call in (lambda: swish.call(x, 1.0), lambda: rows.call(x, x)):\n"
            "    try: call()\n"
            "    except ValueError as error: print(error)\n"
            "print(torch.ops.guide_cuda.swish(torch.zeros(3, dtype=torch.int32, device='meta'), 1.0).dtype)\n"
            "from interop.testing import check_dynamic_shapes\n"
            "check_dynamic_shapes(torch.ops.guide_cuda.swish, lambda n: (torch.zeros(n, n + 1, device='meta'), 1.0))\n"
        )
        message = "argument {!r} must be on a CUDA device, got cpu; copy it with .cuda()\n"
        output = run([sys.executable, "-c", code], cwd=tmp_path)
        assert output == message.format("input 0") + message.format("matrix") + "torch.float32\n"


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "name", ["$(touch here)", "`touch here`", "p$x", "a|b", "a\rb", 'd\\"; touch here; "', r"d\user"]
)
def test_a_path_that_a_shell_or_ninja_would_change(tmp_path, name):
    """nvcc starts its steps by a shell, which would run a part of the path, or name another file.

    A backslash is only wrong in nvcc's list of headers, and a build would not notice their changes.
    """
    source = tmp_path / name / "kernel.cu"
    source.parent.mkdir()
    source.touch()
    extension = Extension("m", [str(source)], extra_compile_args={"nvcc": ["-arch=sm_90"]})
    with pytest.raises(setuptools.errors.CompileError, match=r"must not contain '.*', got '.*kernel\.cu'"):
        compile_cuda(extension, Cuda("", Toolkit(Path("/nowhere"), (13, 0))), tmp_path / "build")
    assert not (tmp_path / "build").exists()


def test_a_path_with_a_line_break(tmp_path):
    """A line break in a path raises, because ninja would read the rest as a rule."""
    source = tmp_path / "a\nrule evil" / "kernel.cu"
    source.parent.mkdir()
    source.touch()
    extension = Extension("m", [str(source)], extra_compile_args={"nvcc": ["-arch=sm_90"]})
    with pytest.raises(setuptools.errors.CompileError, match=r"must not contain '\\n', got .*\\nrule evil"):
        compile_cuda(extension, Cuda("", Toolkit(Path("/nowhere"), (13, 0))), tmp_path)
    assert not (tmp_path / "build.ninja").exists()
