"""The oldest supported release of Cython works in every way in: setup.py, load, the command and CMake."""

import os
import subprocess
import sys

import pytest
from conftest import BUILD, PROJECTS, TESTS, run

from interop.cython.versions import FLOOR

ROOT = TESTS.parent
TRANSLATE_ALL = """
import sys
from interop.build import Extension, cythonize
folder, *sources = sys.argv[1:]
for path in sources:
    name = path.rpartition("/")[2].removesuffix(".pyx")
    stable = "2.11" if "/stable/" in path else None
    module = Extension(name, [path], bootstrap=False, stable=stable, include_dirs=["csrc", path.rpartition("/")[0]])
    cythonize(module, build_dir=folder, force=True)
import Cython
print(Cython.__version__)
"""
# The other tests of load concern its locks and its cache, which do not depend on Cython.
OF_LOAD = ("TestLoad", "TestFile", "TestInline")
TESTED = (
    *("build/test_build.py::TestBuildExtension::test_a_project_in_place", "build/test_config.py::TestCythonize"),
    "build/test_config.py::TestCmake::test_a_module",
    *("cython/test_patches.py", "cython/test_checks.py", "cython/test_checks_property.py"),
    *("cython/test_hints.py", "cython/test_missing_names.py"),
    *(f"jit/test_jit.py::{name}" for name in OF_LOAD),
)


@pytest.fixture(scope="module")
def floor():
    """The environment variables for processes with the floor in place of the installed Cython."""
    folder, version = BUILD / "cython-floor", f"{FLOOR[0]}.{FLOOR[1]}.0"
    if not (folder / "Cython").exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
        done = subprocess.run([*pip, f"Cython=={version}"], capture_output=True, text=True)
        if done.returncode:
            assert "CI" not in os.environ, done.stderr
            pytest.skip(f"pip cannot fetch Cython {version}: {done.stderr.strip().splitlines()[-1]}")
    return os.environ | {"PYTHONPATH": str(folder), "INTEROP_TEST_BUILD": str(BUILD / "floor")}


@pytest.mark.slow
@pytest.mark.timeout(1200)
class TestFloor:
    def test_sources(self, floor, tmp_path):
        """The floor translates the sources of this package and all that the tests compile."""
        found = [*ROOT.glob("interop/*.pyx"), *PROJECTS.rglob("*.pyx")]
        sources = [str(path.relative_to(ROOT)) for path in found]
        assert len(sources) > 25
        said = run([sys.executable, "-P", "-c", TRANSLATE_ALL, tmp_path, *sources], env=floor, cwd=ROOT)
        assert said.splitlines()[-1] == f"{FLOOR[0]}.{FLOOR[1]}.0"

    def test_tests(self, floor):
        used = run([sys.executable, "-P", "-c", "import Cython; print(Cython.__version__)"], env=floor)
        assert used.strip() == f"{FLOOR[0]}.{FLOOR[1]}.0"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        said = run([*command, *(TESTS / path for path in TESTED)], env=floor, cwd=ROOT)
        assert " passed" in said
