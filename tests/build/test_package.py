"""The wheel and the sdist hold what users need, and the wheel alone passes the consumer tests."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile

import pytest
import torch
from conftest import BUILD, PROJECTS, TESTS, built, digest_of, run, tracked

import interop
from interop.paths import STABLE_LIBRARY
from interop.stable_abi import release_of
from interop.toolchain import MINIMUM_STABLE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = TESTS.parent
# Uses, with the wheel, of modules that were compiled with the checkout. Its declarations and headers are those of the
# wheel to the byte. Together they use each compiled part of the package.
WITH_WHEEL = (
    "import mirrors",
    "import plain",
    "import operators, torch; torch.ops.interop_test.scaled_mm",
    "import bridged, numpy; assert bridged.numpy_and_back(numpy.full(3, 2.0)).tolist() == [4, 4, 4]",
)
# Prints the sources and dependencies of setup.py's extensions.
BUILT_FROM = """
import json, setuptools
from distutils.core import run_setup
made = run_setup("setup.py", stop_after="init")
print(json.dumps({e.name: e.sources + e.depends for e in made.ext_modules}))
"""
GENERATED = {
    "pxd/torch/_tensor.pxd",
    "pxd/ATen/Functions.pxd",
    "pxd/ATen/core/TensorBody.pxd",
    "pxd/interop/functions.pxd",
}


def test_the_package_is_built_again_when_any_native_source_changes():
    """Both pip and make do so. Ninja then finds the files that include it."""
    extensions = run([sys.executable, "-P", "-c", BUILT_FROM], cwd=ROOT)
    for extension, files in json.loads(extensions.splitlines()[-1]).items():
        missing = tracked("csrc/*.h", "csrc/*.cpp") - {os.path.relpath(ROOT / name, ROOT) for name in files}
        assert missing == set(), extension
    made = re.search(r"^\.venv/ready: (.*)", run(["make", "-np", ".venv/ready"], cwd=ROOT), re.MULTILINE)
    wanted = tracked("csrc/*.h", "csrc/*.cpp", "csrc/*.cuh", "pxd/*.pxd", "interop/_*.pyx", "interop/cython/*.py")
    assert wanted <= set(made[1].split()), wanted - set(made[1].split())


@pytest.fixture(scope="module", autouse=True)
def flags_of_a_user(site):
    """Builds the wheel as it is published, and modules against it as users do.

    The modules of `site` are built before: without the tests' flags, all of them would be compiled again.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CFLAGS", raising=False)
        yield


@pytest.fixture(scope="module")
def distributions(flags_of_a_user):
    """A wheel and an sdist, built from a copy of the checkout."""
    folder = BUILD / "dist"
    files = tracked()
    with built(folder, digest_of(extra=[(name, (ROOT / name).read_bytes()) for name in sorted(files)])) as missing:
        if missing:
            shutil.rmtree(folder, ignore_errors=True)
            source = BUILD / "work" / "sources"
            shutil.rmtree(source, ignore_errors=True)
            for name in files:
                (source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, source / name)
            run([sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, source])
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def test_the_wheel_has_every_declaration_and_header(distributions):
    same = {f"interop/{name}": ROOT / name for name in tracked("pxd", "stable/pxd") | GENERATED}
    same |= {f"interop/{name.removeprefix('csrc/')}": ROOT / name for name in tracked("csrc/include", "stable/include")}
    same["interop/include/interop/functions.h"] = ROOT / "csrc" / "include" / "interop" / "functions.h"
    wanted = same.keys() | {"interop/csrc/bootstrap.cpp", "interop/_build_info.py"}
    wanted |= {name for name in tracked("interop") if name.endswith((".py", ".pyi", "py.typed", ".cmake"))}
    wanted |= tracked("interop/templates")
    with zipfile.ZipFile(distributions["wheel"]) as wheel:
        names = set(wheel.namelist())
        assert wanted <= names, wanted - names
        assert [name for name, path in same.items() if wheel.read(name) != path.read_bytes()] == []
    compiled = {name.split(".")[0] for name in names if name.endswith((".so", ".a"))}
    libraries = {f"interop/stable/lib{STABLE_LIBRARY}"} if release_of(torch.__version__) >= MINIMUM_STABLE else set()
    assert compiled == {"interop/_core", "interop/_bridges"} | libraries


def test_the_wheel_has_nothing_else(distributions):
    """It has no sources that are compiled already, and no stray files of the checkout."""
    with zipfile.ZipFile(distributions["wheel"]) as wheel:
        outside = [name for name in wheel.namelist() if not name.startswith(("interop/", "torch_interop-"))]
        leftovers = [name for name in wheel.namelist() if name.endswith((".pyx", ".pyc", ".o"))]
    leftovers = [name for name in leftovers if not re.fullmatch(r"interop/templates/.*\.pyx", name)]
    assert outside == []
    assert leftovers == []


def test_the_wheel_asks_for_the_torch_that_it_was_built_for(distributions):
    major, minor = torch.__version__.split(".")[:2]
    with zipfile.ZipFile(distributions["wheel"]) as wheel:
        (metadata,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
        text = wheel.read(metadata).decode()
    assert f"Requires-Dist: torch=={major}.{minor}.*" in text
    assert "License-Expression: BSD-3-Clause" in text


def test_the_wheel_says_what_is_compiled_in(distributions):
    """A bill of materials, where PEP 770 puts it, with the licence of each component whose headers ninja saw."""
    with zipfile.ZipFile(distributions["wheel"]) as wheel:
        (name,) = (name for name in wheel.namelist() if ".dist-info/sboms/" in name)
        bill = json.loads(wheel.read(name))
        record = wheel.read(name.partition("/")[0] + "/RECORD").decode()
    assert name in record
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", interop.__version__)
    components = {component["name"]: component for component in bill["components"]}
    assert components.keys() >= {"torch", "numpy", "Cython", "CPython", "libstdc++"}
    assert components["torch"]["version"] == torch.__version__
    for name in components.keys() - {"Cython", "libstdc++"}:
        (licence,) = components[name]["licenses"]
        assert "Copyright" in licence["license"]["text"]["content"], name
    (licence,) = components["numpy"]["licenses"]
    assert not re.search("OpenBLAS|GENERAL PUBLIC LICENSE", licence["license"]["text"]["content"])


def test_the_sdist_has_the_sources_and_nothing_generated(distributions):
    with tarfile.open(distributions["sdist"]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    named = ("setup.py", "pyproject.toml", "LICENSE", "README.md", "CITATION.cff", "SECURITY.md", "docs/changelog.md")
    wanted = tracked("pxd", "csrc", "interop", "tools/sbom.py", *named)
    assert wanted <= names, wanted - names
    assert names & (GENERATED | {"interop/_build_info.py", "csrc/include/interop/functions.h"}) == set()
    assert "Makefile" not in names  # its targets need tools, docs and tests, which are not in the sdist


def test_the_wheel_in_a_fresh_environment(distributions, site):
    """A new environment sees this one's packages, but not the checkout; it installs the wheel and runs the consumer."""
    environment = BUILD / "fresh"
    shutil.rmtree(environment, ignore_errors=True)
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    packages = run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip()
    # A .pth file adds a folder without running the .pth files in it, so an editable interop there stays invisible.
    with open(f"{packages}/outer.pth", "w") as outer:
        outer.write(sysconfig.get_path("purelib"))
    run([python, "-m", "pip", "install", "--no-deps", "--ignore-installed", distributions["wheel"]])
    found = run([python, "-P", "-c", "import interop; print(interop.__file__)"]).strip()
    assert found.startswith(packages)
    variables = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "INTEROP_TEST_SITE")}
    own = BUILD / "fresh-site"
    shutil.rmtree(own, ignore_errors=True)
    shutil.copytree(site, own, ignore=shutil.ignore_patterns("*consumer*"))
    copy = BUILD / "work" / "consumer-of-wheel"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(PROJECTS / "consumer", copy)
    pip = [python, "-P", "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--target", own]
    run([*pip, copy], env=variables)
    for use in WITH_WHEEL:
        run([python, "-P", "-c", use], env=variables | {"PYTHONPATH": str(own)})
    tests = [python, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS / "cython" / "test_consumer.py"]
    output = run(tests, env=variables | {"INTEROP_TEST_SITE": str(own)}, cwd=BUILD)
    assert " passed" in output
    assert "failed" not in output


def built_with(torch_module, folder):
    """The outcome of a build in which `import torch` finds a module with the text `torch_module`."""
    (folder / "torch.py").write_text(torch_module)
    return subprocess.run(
        [sys.executable, ROOT / "setup.py", "build_py", "--build-lib", folder / "lib"],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        timeout=120,
    )


def test_a_build_without_torch_says_so_in_one_line(tmp_path):
    done = built_with("raise ImportError('no torch here')\n", tmp_path)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if "torch-interop" in line]
    assert "torch is missing, or hidden by pip" in line
    assert "If torch 2.10 or newer is installed, keep it; otherwise run `pip install torch==2.13.0`." in line
    assert "repeat your command with --no-build-isolation added" in line
    assert line.endswith("such as: pip install --no-build-isolation .")


def test_a_torch_that_is_too_old(tmp_path):
    done = built_with("__version__ = '2.9.1'\n", tmp_path)
    assert done.returncode == 1
    assert "torch-interop needs torch >= 2.10, got 2.9.1. Run `pip install torch==2.13.0`, then" in done.stderr
    assert "keep it" not in done.stderr
