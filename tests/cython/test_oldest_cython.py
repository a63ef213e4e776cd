"""The oldest supported release of Cython translates all sources; test_other_stack.py runs tests with it."""

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


@pytest.fixture(scope="module")
def floor():
    """The environment variables for processes with the floor in place of the installed Cython."""
    folder, version = BUILD / "cython-floor", f"{FLOOR[0]}.{FLOOR[1]}.0"
    if not (folder / "Cython").exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
        done = subprocess.run([*pip, f"Cython=={version}"], capture_output=True, text=True)
        if done.returncode:
            assert "INTEROP_CI" not in os.environ, done.stderr
            pytest.skip(f"pip cannot fetch Cython {version}: {done.stderr.strip().splitlines()[-1]}")
    return os.environ | {"PYTHONPATH": str(folder)}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_sources(floor, tmp_path):
    """The floor translates the sources of this package and all that the tests compile."""
    found = [*ROOT.glob("interop/*.pyx"), *PROJECTS.rglob("*.pyx")]
    sources = [str(path.relative_to(ROOT)) for path in found]
    assert len(sources) > 25
    said = run([sys.executable, "-P", "-c", TRANSLATE_ALL, tmp_path, *sources], env=floor, cwd=ROOT)
    assert said.splitlines()[-1] == f"{FLOOR[0]}.{FLOOR[1]}.0"
