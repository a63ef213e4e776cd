"""`make lint` looks words up in codespell's dictionaries, with the settings of pyproject.toml."""

import importlib.util
import subprocess
import sys

import pytest
from doc_blocks import ROOT

pytest.importorskip("codespell_lib", reason="codespell is not installed: pip install -r requirements/lint.txt")


@pytest.fixture(scope="module")
def command():
    """The command that tools/lint.py runs, and the files that it passes."""
    spec = importlib.util.spec_from_file_location("lint", ROOT / "tools" / "lint.py")
    lint = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lint)
    (found,) = [command for command in lint.commands(fix=False) if "codespell_lib" in command]
    return found[:3], found[3:]


def test_it_reads_prose_and_sources(command):
    files = set(command[1])
    assert files >= {
        "README.md",
        "CONTRIBUTING.md",
        "docs/start.md",
        "docs/from/index.md",
        "interop/__init__.py",
        "csrc/layout.cpp",
        "csrc/include/interop/tensor.h",
        "pxd/interop/accessor.pxd",
        "stable/pxd/torch/stable.pxd",
        "tests/conftest.py",
        "tools/lint.py",
    }
    assert not [name for name in files if name.endswith((".png", ".svg", ".json"))]


@pytest.mark.parametrize(
    ("text", "returncode"),
    [
        ("A tensor is {}ed.\n".format("recie" + "v"), 65),
        ("It behaves as before: its behaviour is initialised in grey.\n", 0),
    ],
    ids=["misspelt", "British"],
)
def test_a_misspelt_word_fails(command, tmp_path, text, returncode):
    page = tmp_path / "page.md"
    page.write_text(text)
    done = subprocess.run([*command[0], page], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == returncode, done.stdout + done.stderr


def test_the_command_is_that_of_this_python(command):
    assert command[0] == [sys.executable, "-m", "codespell_lib"]
