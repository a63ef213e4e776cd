"""Every block of docs/jit-guide.md does what the page says."""

import os
import re

import pytest
import torch
from conftest import FREE_THREADED, TESTS

from interop.stable_abi import release_of
from interop.toolchain import MINIMUM_STABLE

TEXT = (TESTS.parent / "docs" / "jit-guide.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"(?:<!-- (?P<note>.*?) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)```", re.DOTALL)
BLOCKS = [(block["language"], block["note"] or "", block["code"]) for block in BLOCK.finditer(TEXT)]


def of(language):
    return [code for found, _, code in BLOCKS if found == language]


@pytest.mark.usefixtures("jit_cache")
@pytest.mark.extended
def test_blocks_of_python(tmp_path, monkeypatch, capsys):
    """The blocks of Python run in order, with the files that the page shows."""
    monkeypatch.chdir(tmp_path)
    for _, note, code in BLOCKS:
        if note.startswith("file: "):
            (tmp_path / note.removeprefix("file: ")).write_text(code)
    names = {}
    for code in of("python"):
        if "stable=" in code and (FREE_THREADED or release_of(torch.__version__) < MINIMUM_STABLE):
            continue
        exec(compile(code, "jit-guide.md", "exec"), names)
    assert capsys.readouterr().out.startswith("tensor([")
    (message,) = (code for _, note, code in BLOCKS if note == "message")
    assert names["message"] == message.rstrip("\n")
    assert names["place"] == 2


@pytest.mark.extended
def test_blocks_of_a_notebook(notebook):
    *before, last = of("ipython")
    assert len(before) == 2
    for cell in before:
        notebook.run(cell)
    assert notebook.run(last) == "tensor([0., 1., 8.])"


def test_nothing_is_left_out():
    """Every other block is a file for the blocks of Python, or a command line."""
    assert {language for language, _, _ in BLOCKS} == {"cython", "cpp", "python", "ipython", "text", "sh"}
    assert all(note.startswith("file: ") for language, note, _ in BLOCKS if language in ("cython", "cpp"))
    for line in of("sh")[0].splitlines():
        assert re.match(r"python -m interop cache( --clear| {2})", line)
    assert "INTEROP_CACHE_LIMIT" in TEXT
    assert os.path.exists(TESTS.parent / "docs" / "cuda-guide.md")
