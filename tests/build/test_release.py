"""A release: one version, its metadata and citation, and one line of error if it cannot be built."""

import os
import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from conftest import TESTS, tracked

import interop

ROOT = TESTS.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_the_version_stands_in_one_place():
    assert interop.__version__ == PROJECT["version"], "the package was built from another version: make demo"
    about = ("CONTRIBUTING.md", "docs/changelog.md")  # they name releases
    files = [name for name in tracked() if not name.endswith((".json", ".jsonl", *about))]
    word = re.compile(rf"(?<![\d.]){re.escape(PROJECT['version'])}(?![\d.]|-)".encode())
    having = [name for name in files if (ROOT / name).is_file() and word.search((ROOT / name).read_bytes())]
    assert having == ["pyproject.toml"]


def test_the_changelog_begins_with_it():
    text = (ROOT / "docs" / "changelog.md").read_text(encoding="utf-8")
    assert re.search(r"^## (.*)", text, re.MULTILINE)[1].startswith(f"{PROJECT['version']}, ")


def test_the_citation():
    """The citation has the keys that the format requires, but no version or date, which would be a second place."""
    assert CITATION.keys() >= {"cff-version", "message", "title", "authors"}
    assert not CITATION.keys() & {"version", "date-released"}
    assert CITATION["license"] == PROJECT["license"]
    assert [author["name"] for author in CITATION["authors"]] == [author["name"] for author in PROJECT["authors"]]


def test_classifiers():
    """The classifiers agree with requires-python, and trove_classifiers knows all of them."""
    trove = pytest.importorskip("trove_classifiers", reason="is not installed")
    assert set(PROJECT["classifiers"]) <= trove.classifiers
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert f">={min(named, key=lambda version: int(version[2:]))}" == PROJECT["requires-python"]


def test_an_isolated_build_ends_before_a_torch_is_fetched(tmp_path):
    """The build fails with one line when pip asks for the metadata, before pip fetches the dependencies."""
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')\n")
    done = subprocess.run(
        [sys.executable, ROOT / "setup.py", "dist_info", "--output-dir", tmp_path],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("torch-interop is compiled against the torch of this environment, but torch is missing")
    assert "pip install --no-build-isolation" in line
