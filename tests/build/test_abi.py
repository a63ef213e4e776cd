"""A module compiled for another torch raises at import, with both versions and the command that rebuilds it.

The other torch is the installed one with another version in its Python and C++ sources, and an extra function in its
headers that its libraries lack, as happens when a function is renamed. Everything is really built against it.
"""

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
import torch
from conftest import BUILD, PACKAGE, TESTS, built, fingerprint, install_project
from torch.utils.cpp_extension import include_paths

import interop
from interop import abi
from interop.abi.names import abi_name, abi_version
from interop.doctor.module import examine_module

OTHER = "2.99.0"
VERSION_HEADER = "include/torch/headeronly/version.h"

MODULES = {
    "uses_gone": """
cimport torch

cdef extern from "torch/headeronly/version.h" namespace "c10":
    long gone_in_the_next_release()

def call():
    return gone_in_the_next_release()

def numel(torch.Tensor x not None):
    return x.cdata.numel()
""",
    "plain_cimport": """
cimport torch

def numel(torch.Tensor x not None):
    return x.cdata.numel()
""",
}
SETUP = """
from setuptools import setup
from interop.build import BuildExtension, Extension

setup(
    name="for_other_torch",
    ext_modules=[
        Extension("uses_gone", ["uses_gone.pyx"]),
        Extension("plain_cimport", ["plain_cimport.pyx"], bootstrap=False),
    ],
    cmdclass={"build_ext": BuildExtension},
)
"""


def doctored_torch(folder):
    """A folder with the installed torch package, except for its version and one header."""
    real, copy = Path(torch.__file__).parent, folder / "torch"
    shutil.rmtree(folder, ignore_errors=True)
    changed = {"version.py", VERSION_HEADER}
    for name in changed:
        # Each parent folder of a changed file is a real folder, with links to the installed folder's entries.
        for parent in reversed(Path(name).parents):
            (copy / parent).mkdir(parents=True, exist_ok=True)
            for entry in (real / parent).iterdir():
                link = copy / parent / entry.name
                if not link.exists() and not any(
                    Path(entry.relative_to(real)) in (Path(c), *Path(c).parents) for c in changed
                ):
                    link.symlink_to(entry)
    version = (real / "version.py").read_text()
    (copy / "version.py").write_text(re.sub(r"__version__ = .*", f"__version__ = '{OTHER}'", version))
    header = (real / VERSION_HEADER).read_text()
    header = re.sub(r"(TORCH_VERSION_MINOR) \d+", r"\1 99", header)
    (copy / VERSION_HEADER).write_text(header + "\nnamespace c10 { long gone_in_the_next_release(); }\n")
    return folder


@pytest.fixture(scope="module")
def for_other():
    """The folders of the other torch, and of interop and two modules that were built for it."""
    site, other, modules = (BUILD / name for name in ("other-torch", "other-torch-itself", "modules-for-other-torch"))
    root = TESTS.parent
    # Other tests cover the behaviour of these sources, so they need no optimisation.
    environment = os.environ | {
        "PYTHONPATH": f"{other}{os.pathsep}{site}",
        "CFLAGS": "-O0 -g0",
        "CXXFLAGS": "-O0 -g0",
    }
    wanted = fingerprint(root / "setup.py", root / "csrc", PACKAGE, extra=(MODULES, SETUP))
    with built(site, wanted) as missing:
        if missing:
            shutil.rmtree(site, ignore_errors=True)
            doctored_torch(other)
            # Copy the sources, because pip builds in the folder that it is given.
            source = BUILD / "work" / "torch-interop"
            shutil.rmtree(source, ignore_errors=True)
            left_out = (".git", ".venv", "build", "tests", "docs", "*.so", "*.egg-info")
            shutil.copytree(root, source, ignore=shutil.ignore_patterns(*left_out))
            install_project(source, site, env=environment)
            project = BUILD / "for_other_torch"
            shutil.rmtree(project, ignore_errors=True)
            project.mkdir(parents=True)
            (project / "setup.py").write_text(SETUP)
            for name, text in MODULES.items():
                (project / f"{name}.pyx").write_text(text)
            install_project(project, site, env=environment)
            # Copy the modules only: the interop that was built for the other torch stays in its folder.
            shutil.rmtree(modules, ignore_errors=True)
            modules.mkdir()
            for library in site.glob("*.so"):
                shutil.copy(library, modules)
    return {"modules": modules, "site": site, "torch": other}


def import_error(bare, code, *path):
    """The last line of the traceback of code that must raise ImportError."""
    done = bare(code, *path, check=False)
    assert done.returncode == 1, done.stdout
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: "), done.stderr
    return last


@pytest.mark.slow
class TestModuleForAnotherTorch:
    def test_it_works_with_its_own(self, bare, for_other):
        """A module loads with its own torch; otherwise the errors below would prove nothing."""
        code = "import plain_cimport, torch; print(torch.__version__, plain_cimport.numel(torch.ones(3)))"
        assert bare("import torch; " + code, for_other["torch"], for_other["site"]) == f"{OTHER} 3\n"

    def test_message(self, bare, for_other):
        """The message appears even if symbols are missing, because the check precedes the loader's look-up."""
        message = import_error(bare, "import uses_gone", for_other["modules"])
        assert "module 'uses_gone' was compiled for torch 2.99" in message
        assert f"torch {torch.__version__} is running" in message
        assert "pip install --no-build-isolation" in message

    def test_without_bootstrap(self, bare, for_other):
        message = import_error(bare, "import torch, plain_cimport", for_other["modules"])
        assert "was compiled for torch 2.99" in message
        assert f"torch {torch.__version__} is running" in message
        assert "pip install --no-build-isolation" in message

    @pytest.mark.parametrize("module", MODULES)
    def test_the_doctor(self, for_other, module):
        """The doctor reports a module with a bootstrap and missing symbols, and one without a bootstrap."""
        for path in for_other["modules"].glob(f"*{module}*.so"):
            wrong = {one.subject: f"{one.text} {one.fix}" for one in examine_module(path) if one.fix}
            assert "built for torch 2.99" in wrong["torch"]
            assert f"but torch {torch.__version__} is installed" in wrong["torch"]
            assert "pip install --no-build-isolation" in wrong["torch"]
            if module == "uses_gone":
                assert "nothing defines c10::gone_in_the_next_release()" in wrong["symbols"]
                assert "compiled for another release" in wrong["symbols"]

    def test_interop_itself(self, bare, for_other):
        message = import_error(bare, "import interop", for_other["site"])
        assert f"torch-interop was built for torch {OTHER}" in message
        assert f"torch {torch.__version__} is running" in message
        assert "pip install --no-build-isolation" in message

    def test_half_a_module(self, bare, site, tmp_path):
        shutil.copy(next(site.glob("consumer.*.so")), tmp_path)
        message = import_error(bare, "import consumer", tmp_path)
        assert "module 'consumer' cannot load its compiled half" in message
        assert abi.NAME in message


class TestNames:
    @pytest.mark.parametrize(
        ("version", "name"),
        [
            ("2.13.0", "torch_2_13"),
            ("2.13.0+cpu", "torch_2_13"),
            ("2.13.1+cu130", "torch_2_13"),
            ("2.10.0.post1", "torch_2_10"),
            ("2.14.0a0+git1f2e3d4", "torch_2_14_0a0_git1f2e3d4"),
            ("2.14.0.dev20260101+cpu", "torch_2_14_0_dev20260101_cpu"),
            ("2.14.0rc1", "torch_2_14_0rc1"),
        ],
    )
    def test_releases_share_a_name_and_development_versions_do_not(self, version, name):
        assert abi_name(version) == name
        assert name.isidentifier()

    def test_version_of_a_name(self):
        assert abi_version("torch_2_13") == "2.13"

    def test_the_running_one_resolves_to_the_real_types(self):
        module = __import__(f"interop.abi.{abi.NAME}", fromlist=["Tensor"])
        assert {name: getattr(module, name) for name in abi.MIRRORED} == {
            name: getattr(torch, name) for name in abi.MIRRORED
        }

    def test_other_names_are_not_ours(self):
        with pytest.raises(ModuleNotFoundError):
            __import__("interop.abi.numpy_2_0")


@pytest.mark.long
@pytest.mark.extended
class TestLayout:
    """csrc/layout.cpp asserts the layout at compile time; here it fails to compile with a different layout."""

    COMPILE = ("c++", "-std=c++20", "-fsyntax-only", "-w")

    def compile(self, *flags):
        major, minor = torch.__version__.split(".")[:2]
        includes = [f"-I{folder}" for folder in (*include_paths(), sysconfig.get_path("include"))]
        versions = [f"-DINTEROP_TORCH_MAJOR={major}", f"-DINTEROP_TORCH_MINOR={minor}"]
        command = [
            *self.COMPILE,
            *versions,
            *flags,
            *includes,
            f"-I{interop.get_include()}",
            TESTS.parent / "csrc/layout.cpp",
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    def test_another_layout_does_not_compile(self, tmp_path):
        (tmp_path / "interop").mkdir()
        header = (Path(interop.get_include()) / "interop" / "tensor.h").read_text()
        doctored = header.replace("  at::Tensor cdata;\n", "  PyObject* more;\n  at::Tensor cdata;\n")
        assert doctored != header
        (tmp_path / "interop" / "tensor.h").write_text(doctored)
        done = self.compile(f"-I{tmp_path}")
        assert done.returncode == 1
        assert "static assertion failed" in done.stderr
        assert "offsetof" in done.stderr
