"""The projects that `python -m interop new` writes build, install and pass their tests, as their READMEs say."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import torch
from conftest import BUILD, PACKAGE, built, fingerprint, needs_limited_api, needs_stable, run
from conftest import FREE_THREADED as WITHOUT_GIL
from packaging.requirements import Requirement

from interop import __main__ as command_line
from interop.abi import NAME
from interop.abi.names import torch_requirement
from interop.new import FREE_THREADED, PLACEHOLDER, TEMPLATES, TORCH, write_project
from interop.paths import get_cmake_dir
from interop.stable_abi import release_of

VARIABLES = os.environ | {"INTEROP_CUDA": "compile", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

BREAKING = (
    "pytest test tests pip setup setuptools ninja cmake scikit_build_core Cython py src build dist conftest torch "
    "numpy interop torch_interop ATen c10 json types def libcpp NumPy load_library __init__"
)


@pytest.fixture
def new(tmp_path, monkeypatch, capsys):
    """Runs the command in an empty folder; returns exit status, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def run_new(*arguments):
        status = command_line.main(["new", *arguments])
        return status, *capsys.readouterr()

    return run_new


def installed(kind, **options):
    """The folder with a project and, in `site`, its installed files; built again only after a change."""
    work = BUILD / "new" / kind
    places = (TEMPLATES, Path(get_cmake_dir()))
    extra = [path.read_bytes() for place in places for path in sorted(place.rglob("*")) if path.is_file()]
    with built(work, fingerprint(PACKAGE / "new.py", PACKAGE / "config.py", extra=(kind, extra))) as missing:
        if missing:
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            write_project(f"made_{kind}", work, **options)
            pip = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", work]
            run([*pip, work / f"made_{kind}"], env=VARIABLES)
            (wheel,) = work.glob("*.whl")
            zipfile.ZipFile(wheel).extractall(work / "site")
    return work


@pytest.fixture(scope="module")
def with_setuptools():
    return installed("setuptools")


@pytest.fixture(scope="module")
def with_cmake():
    return installed("cmake", cmake=True)


@pytest.fixture(scope="module")
def with_stable():
    return installed("stable", stable="2.11")


@pytest.fixture(scope="module")
def with_stable_cmake():
    return installed("stable_cmake", stable="2.11", cmake=True)


@pytest.fixture(scope="module")
def with_cuda(toolkit):
    return installed("cuda", cuda=True)


def own_tests(work):
    """Runs the tests of a project in a new process; returns the output of pytest."""
    (project,) = work.glob("made_*/pyproject.toml")
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", project.parent]
    return run(command, env=VARIABLES | {"PYTHONPATH": str(work / "site")}, cwd=work)


OF_MANY = [pytest.param(kind, marks=needs_stable) for kind in ("with_stable", "with_stable_cmake")]


@pytest.mark.parametrize("kind", ["with_setuptools", "with_cmake", "with_cuda", *OF_MANY])
@pytest.mark.slow
def test_its_own_tests_pass(request, kind):
    output = own_tests(request.getfixturevalue(kind))
    assert " passed" in output
    assert "failed" not in output


@pytest.mark.parametrize("kind", ["with_setuptools", "with_cmake"])
@pytest.mark.slow
def test_what_is_installed(request, kind):
    """The package has both files of the module and its .pxd file; nothing else is installed."""
    site = request.getfixturevalue(kind) / "site"
    (package,) = (path for path in site.iterdir() if not path.name.endswith(".dist-info"))
    compiled = {path.name.partition(".")[0] for path in package.glob("*.so")}
    assert compiled == {"ops", f"_ops_{NAME}"}
    assert (package / "ops.pxd").is_file()
    (metadata,) = site.glob("*.dist-info/METADATA")
    assert {f"Requires-Dist: {torch_requirement(torch.__version__)}", "Requires-Dist: torch-interop"} <= set(
        metadata.read_text().splitlines()
    )


@pytest.mark.parametrize("kind", OF_MANY)
@pytest.mark.slow
def test_what_is_installed_of_a_stable_one(request, kind):
    """The module is one file beside its .pxd file, and does not require torch-interop."""
    work = request.getfixturevalue(kind)
    python = min((3, 12), sys.version_info[:2])
    (wheel,) = work.glob("*.whl")
    assert f"-cp{python[0]}{python[1]}-abi3-" in wheel.name
    package = work / "site" / kind.replace("with_", "made_")
    assert {path.name for path in package.iterdir()} >= {"ops.abi3.so", "ops.pxd"}
    assert len(list(package.glob("*.so"))) == 1
    (metadata,) = work.glob("site/*.dist-info/METADATA")
    required = [line for line in metadata.read_text().splitlines() if line.startswith("Requires-")]
    assert required == [
        f"Requires-Python: >={python[0]}.{python[1]}",
        "Requires-Dist: torch>=2.11",
        'Requires-Dist: pytest; extra == "test"',
    ]


@pytest.mark.slow
def test_the_tests_notice(with_setuptools, tmp_path):
    """The project's own tests fail if its function is wrong."""
    work = shutil.copytree(with_setuptools, tmp_path / "work")
    wrong = "def softclip(x, limit):\n    return x\n"
    (work / "site" / "made_setuptools" / "__init__.py").write_text(wrong)
    with pytest.raises(AssertionError, match="failed"):
        own_tests(work)


class TestCommand:
    def test_what_it_writes(self, new, tmp_path):
        status, out, error = new("my_cells")
        assert (status, error) == (0, "")
        files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
        assert files == {
            "my_cells/.gitignore",
            "my_cells/README.md",
            "my_cells/pyproject.toml",
            "my_cells/setup.py",
            "my_cells/src/my_cells/__init__.py",
            "my_cells/src/my_cells/ops.pxd",
            "my_cells/src/my_cells/ops.pyx",
            "my_cells/tests/test_my_cells.py",
        }
        assert files <= set(out.splitlines())
        assert out.endswith('Next:\n  cd my_cells\n  pip install --no-build-isolation ".[test]"\n  python -m pytest\n')
        texts = [(tmp_path / file).read_text() for file in files]
        assert not any(placeholder in text for placeholder in (PLACEHOLDER, TORCH) for text in texts)

    @needs_stable
    @needs_limited_api
    @pytest.mark.parametrize(
        ("given", "release"), [(["--stable"], "2.11"), (["--stable", "2.11"], "2.11"), (["--stable=2.12"], "2.12")]
    )
    def test_a_stable_one(self, new, tmp_path, given, release):
        if release_of(release) > release_of(torch.__version__):
            pytest.skip(f"torch {torch.__version__} is older")
        assert new("cells", *given)[0] == 0
        project = tomllib.loads((tmp_path / "cells" / "pyproject.toml").read_text())["project"]
        assert project["dependencies"] == [f"torch>={release}"]
        python = min((3, 12), sys.version_info[:2])
        assert project["requires-python"] == f">={python[0]}.{python[1]}"
        setup = (tmp_path / "cells" / "setup.py").read_text()
        assert f'stable="{release}"' in setup
        assert f'py_limited_api="cp{python[0]}{python[1]}"' in setup
        assert "\nsetup.py names the oldest torch" in (tmp_path / "cells" / "README.md").read_text()
        texts = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
        assert not [text for text in texts if "your_" in text]
        assert not [text for text in texts if re.search(r"cimport (ATen|torch$)", text, re.MULTILINE)]

    @needs_stable
    @needs_limited_api
    def test_a_stable_one_by_cmake(self, new, tmp_path):
        assert new("cells", "--stable", "--cmake")[0] == 0
        tag = "cp{}{}".format(*min((3, 12), sys.version_info[:2]))
        files = {path.name: path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
        assert f"MODULE cells.ops STABLE 2.11 LIMITED_API {tag})" in files["CMakeLists.txt"]
        project = tomllib.loads(files["pyproject.toml"])
        assert project["tool"]["scikit-build"]["wheel"]["py-api"] == tag
        assert project["project"]["dependencies"] == ["torch>=2.11"]
        assert "setup.py" not in files
        assert not [name for name, text in files.items() if "your_" in text]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--stable", "2.9"], r"--stable: stable must .*, got '2\.9'"),
            (["--stable", "--cuda"], "has no CUDA: leave out --stable or --cuda"),
            (
                ["--stable", "of_mine"],
                "--stable: expected a release .* got 'of_mine'; write NAME first: of_mine --stable",
            ),
        ],
    )
    def test_a_stable_one_that_there_is_not(self, new, tmp_path, arguments, message):
        status, _, error = new("cells", *arguments)
        assert status == 2
        assert re.search(message, error)
        assert list(tmp_path.iterdir()) == []

    @needs_stable
    @pytest.mark.skipif(not WITHOUT_GIL, reason="this CPython has a Limited API")
    def test_a_stable_one_without_a_limited_api(self, new, tmp_path):
        status, _, error = new("cells", "--stable")
        assert status == 2
        assert "--stable: a free-threaded CPython, like this one, has no Limited API; leave --stable out" in error
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("kind", [[], ["--cmake"], ["--cuda"]], ids=str)
    def test_it_asks_for_the_torch_that_it_is_built_with(self, new, tmp_path, kind):
        assert new("cells", *kind)[0] == 0
        project = tomllib.loads((tmp_path / "cells" / "pyproject.toml").read_text())["project"]
        ours, interop = map(Requirement, project["dependencies"])
        assert (ours.name, interop.name) == ("torch", "torch-interop")
        major, minor = map(int, torch.__version__.split(".")[:2])
        assert ours.specifier.contains(torch.__version__, prereleases=True)
        assert not ours.specifier.contains(f"{major}.{minor + 1}.0", prereleases=True)

    def test_torch_is_not_imported(self, tmp_path):
        """The import takes many times as long as the command."""
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "__init__.py").write_text("raise ImportError('imported')\n")
        (tmp_path / "torch" / "version.py").write_text("__version__ = '2.99.0'\ncuda = None\n")
        command = [sys.executable, "-P", "-m", "interop", "new", "cells"]
        done = subprocess.run(
            command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert '"torch==2.99.*"' in (tmp_path / "cells" / "pyproject.toml").read_text()

    @pytest.mark.parametrize(
        ("version", "wanted"),
        [
            ("2.13.0+cpu", "torch==2.13.*"),
            ("2.10.1", "torch==2.10.*"),
            ("2.13.0.post1", "torch==2.13.*"),
            ("2.14.0a0+git1f2e3d", "torch==2.14.0a0"),
            ("2.14.0.dev20260401+cpu", "torch==2.14.0.dev20260401"),
        ],
    )
    def test_other_releases_of_torch(self, version, wanted):
        """The requirement tells releases apart as `interop.abi` does."""
        assert torch_requirement(version) == wanted
        assert Requirement(wanted).specifier.contains(version, prereleases=True)

    def test_kinds(self, new, tmp_path):
        status, out, _ = new("a", "--cmake")
        assert status == new("b", "--cuda")[0] == 0
        assert 'Next:\n  pip install "scikit-build-core>=0.10" cmake ninja\n  cd a\n' in out
        assert (tmp_path / "a" / "CMakeLists.txt").is_file()
        assert not (tmp_path / "a" / "setup.py").exists()
        assert (tmp_path / "b" / "src" / "b" / "softclip.cu").is_file()

    @pytest.mark.parametrize("kind", [[], ["--cmake"], ["--cuda"]], ids=str)
    def test_free_threaded(self, new, tmp_path, kind):
        """Each module declares it in its source, whichever tool builds it."""
        assert new("cells", "--free-threaded", *kind)[0] == new("others", *kind)[0] == 0
        said, other = (
            [path.read_text().startswith(FREE_THREADED) for path in (tmp_path / name).rglob("*.pyx")]
            for name in ("cells", "others")
        )
        assert said == [True] * len(said)
        assert other == [False] * len(said)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["my-cells"], "NAME must be an identifier of Python, in ASCII, such as 'my_cells'; got 'my-cells'"),
            (["folder/cells"], "such as 'folder_cells'"),
            (["2fast"], "such as 'fast'"),
            (["módulo"], "NAME must be an identifier of Python, in ASCII"),
            ([""], "got ''"),
            (["../up"], "such as 'up'"),
            (["class"], "'class' is a keyword of Python; choose another, such as 'my_class'"),
            (
                ["_cells"],
                "'_cells' is a name that pip does not accept, because it ends in an underscore; choose another,",
            ),
            (["cdef"], "'cdef' is a keyword of Cython"),
            (["random"], "'random' is the name of a module of the standard library"),
            (["src"], "'src' is a name that tools look for in a project"),
            (["aten"], "'aten' is a name in torch.ops"),
            (["Torch_Interop"], "'Torch_Interop' is the name of a package"),
            (["elf_headers-"], "such as 'elf_headers'"),
            (["cells", "--cuda", "--cmake"], "leave out --cuda or --cmake"),
            ([], "NAME"),
        ],
    )
    def test_wrong_arguments(self, new, tmp_path, arguments, message):
        status, out, error = new(*arguments)
        assert (status, out) == (2, "")
        assert error.startswith("error: ")
        assert message in error
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("name", BREAKING.split())
    def test_names_that_break_a_project(self, new, tmp_path, name):
        """Each is rejected with a suggestion of a name that works."""
        status, _, error = new(name)
        assert status == 2
        (instead,) = re.findall(r"choose another, such as '(\w+)'\n$", error)
        assert not list(tmp_path.iterdir())
        assert new(instead)[0] == 0

    @pytest.mark.parametrize("length", [201, 301, 5000])
    def test_a_name_that_is_too_long(self, new, tmp_path, length):
        status, _, error = new("a" * length)
        assert status == 2
        assert re.match(rf"error: NAME must have at most 200 characters, .* and has {length}; choose", error)
        assert not [*tmp_path.iterdir()]
        assert new("a" * 200)[0] == 0

    def test_a_name_that_is_not_in_utf_8(self, new):
        status, _, error = new("caf\udce9")
        assert status == 2
        assert re.match(r"error: NAME must be an identifier .* such as 'caf'; got 'caf\\udce9'\n", error)

    def test_a_package_that_is_installed(self, new, tmp_path, monkeypatch):
        """Its name is rejected, unless it is a project installed from a folder."""
        assert "'rich' is an installed package, version" in new("rich")[2]
        assert "'yaml' is an installed module, " in new("yaml")[2]
        metadata = tmp_path / "site" / "cells-0.1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: cells\nVersion: 0.1.0\n")
        monkeypatch.syspath_prepend(tmp_path / "site")
        assert "'cells' is an installed package, version 0.1.0, which pip would replace" in new("cells")[2]
        (metadata / "direct_url.json").write_text(f'{{"dir_info": {{}}, "url": "{tmp_path.as_uri()}"}}')
        assert new("cells")[0] == 0

    def test_links(self, new, tmp_path):
        """The README has no links: torch-interop comes from a checkout, and is on no package index."""
        assert new("cells")[0] == 0
        readme = (tmp_path / "cells" / "README.md").read_text()
        assert "](" not in readme
        assert "from its checkout" in readme

    def test_a_folder_that_is_there(self, new, tmp_path):
        (tmp_path / "cells").mkdir()
        status, _, error = new("cells")
        assert status == 1
        assert error.startswith("error: 'cells' exists already: choose another name")
        assert not list((tmp_path / "cells").iterdir())

    def test_a_folder_that_cannot_be_written(self, tmp_path):
        """The command leaves nothing behind if a write fails, as on a full disk."""
        code = (
            "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))\n"
            "from interop.new import main\nmain(['cells'])"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
        assert "CommandError: cannot write cells: File too large" in done.stderr
        assert not list(tmp_path.iterdir())
