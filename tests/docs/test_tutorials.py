"""The tutorials: each notebook runs in a real kernel from top to bottom, and its file holds only code and text."""

import json
import re

import pytest
import torch
from doc_blocks import DOCS, ROOT, cells

import interop

TUTORIALS = sorted((DOCS / "tutorials").glob("*.ipynb"))
FAILS = "raises-exception"
"""The tag of a cell that shows a mistake. nbclient, and so the site's build, continues after it."""

PATH = re.compile(r"(?<![\w./])(?:/|~/|[A-Z]:\\)[\w-]+[/\\]")


@pytest.fixture(params=TUTORIALS, ids=[path.stem for path in TUTORIALS])
def tutorial(request):
    return request.param


def executed(path, folder):
    """A notebook after its cells have run in `folder`; nbclient's CellExecutionError names the one that fails."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install -r requirements/docs.txt")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    return notebook


@pytest.mark.slow
def test_it_runs(tutorial, tmp_path, monkeypatch):
    """The cells that show a mistake fail, and no others. `make docs` may have compiled their modules already."""
    monkeypatch.setenv("INTEROP_CACHE_DIR", str(ROOT / "build" / "notebooks" / "modules"))
    monkeypatch.delenv("CFLAGS")
    failed = {
        cell["id"]
        for cell in executed(tutorial, tmp_path)["cells"]
        if any(output["output_type"] == "error" for output in cell.get("outputs", ()))
    }
    assert failed == {cell["id"] for cell in cells(tutorial) if FAILS in cell["metadata"].get("tags", ())}


@pytest.mark.slow
@pytest.mark.usefixtures("jit_cache")
def test_the_cpp_that_is_ported(tmp_path):
    """The notebook compares results with those of its C++; this compares the errors of step 1 with the C++'s."""
    sources = [source(cell) for cell in cells(DOCS / "tutorials" / "cpp-extension.ipynb")]
    cpp, step = (
        next(text.partition("\n")[2] for text in sources if text.startswith(magic))
        for magic in ("%%writefile before.cpp\n", "%%torch_cython\n")
    )
    (tmp_path / "before.cpp").write_text(cpp)
    before = interop.load("before", [tmp_path / "before.cpp"])
    said = []
    for module in (interop.load_inline(step), before):
        with pytest.raises(ValueError, match="weight must have 8 elements") as caught:
            module.rms_norm(torch.ones(4, 8), torch.ones(3))
        said.append(str(caught.value))
    assert said[0] == said[1]


@pytest.mark.long
def test_an_error_that_is_not_expected_fails(tmp_path):
    pytest.importorskip("nbclient", reason="nbclient is not installed: pip install -r requirements/docs.txt")
    from nbclient.exceptions import CellExecutionError

    cell = {"cell_type": "code", "id": "one", "metadata": {}, "outputs": [], "execution_count": None}
    notebook = {"cells": [cell | {"source": "1 / 0"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = tmp_path / "wrong.ipynb"
    path.write_text(json.dumps(notebook))
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        executed(path, tmp_path)
    cell["metadata"]["tags"] = [FAILS]
    notebook["cells"] = [cell | {"source": "1 / 0"}]
    path.write_text(json.dumps(notebook))
    (ran,) = executed(path, tmp_path)["cells"]
    assert ran["outputs"][-1]["ename"] == "ZeroDivisionError"


def test_there_are_three_and_the_index_lists_each():
    index = (DOCS / "tutorials" / "index.md").read_text(encoding="utf-8")
    assert len(TUTORIALS) == 3
    assert all(f"({path.name})" in index and f"\n{path.stem}\n" in index for path in TUTORIALS)


def test_no_output_is_stored(tutorial):
    """Stored output would be old and from one machine; the site shows what the cells print in its own build."""
    stored = [cell["id"] for cell in cells(tutorial) if cell.get("outputs") or cell.get("execution_count") is not None]
    assert not stored, f"{tutorial.name} has outputs in {stored}: clear them before you commit"


def test_no_path_of_a_machine(tutorial):
    found = {cell["id"]: PATH.findall(source(cell)) for cell in cells(tutorial)}
    assert not any(found.values()), f"{tutorial.name} names folders of one machine: {found}"


@pytest.mark.parametrize("text", ["open('/home/ada/x')", "~/cells/cell.pyx", "gcc -I /usr/include/x", r"C:\cells\x"])
def test_a_path_of_a_machine_is_found(text):
    assert PATH.search(text)


@pytest.mark.parametrize("text", ["a / b / c", "../start.md", "x/y", "float/double", "ports//left"])
def test_other_slashes_are_not(text):
    assert not PATH.search(text)


def test_it_begins_with_a_title_and_ends_with_what_to_read_next(tutorial):
    words = [source(cell) for cell in cells(tutorial) if cell["cell_type"] == "markdown"]
    assert re.match(r"# \w", words[0])
    assert words[-1].startswith("## What next\n")
    assert "](" in words[-1]


def source(cell):
    return "".join(cell["source"])
