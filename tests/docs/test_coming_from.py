"""docs/from: the code that each page writes with another tool and with this one is compiled, run and compared."""

import os
import sys
import sysconfig
from pathlib import Path

import pytest
import torch
from conftest import run
from doc_blocks import DOCS, blocks, of, write_files

import interop

PAGES = {  # and the package of requirements/experiments.txt that each needs
    "pybind11": "torch",
    "cpp-extension": "torch",
    "nanobind": "nanobind",
    "cython-numpy": "numpy",
    "tvm-ffi": "tvm_ffi",
}


def test_each_page_is_run():
    assert {path.stem for path in (DOCS / "from").glob("*.md")} == PAGES.keys() | {"index"}
    index = (DOCS / "from" / "index.md").read_text(encoding="utf-8")
    assert all(f"]({page}.md)" in index for page in PAGES)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", PAGES)
def test_both_do_the_same(page, tmp_path, jit_cache):
    """The page's code runs in one process, as a reader would paste it; its own assertions compare the results."""
    pytest.importorskip(PAGES[page], reason="the package index may not have it for this CPython")
    name = f"docs/from/{page}.md"
    write_files(name, tmp_path)
    variables = os.environ | {"PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])}
    code = "\n".join(of(name, "python"))
    assert "assert " in code
    if page == "cpp-extension":  # the page that defines an operator
        code += (
            "\nfrom interop.testing import check_dynamic_shapes\n"
            "check_dynamic_shapes(torch.ops.ours.cube, lambda n: (torch.randn(n, n + 1, requires_grad=True),))\n"
        )
    run([sys.executable, "-c", code], cwd=tmp_path, env=variables)


@pytest.mark.usefixtures("jit_cache")
def test_the_loop_in_cython_rejects_a_tensor_that_requires_grad(tmp_path):
    """An accessor that reads would accept it."""
    write_files("docs/from/cython-numpy.md", tmp_path)
    ours = interop.load(tmp_path / "ours.pyx")
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(ValueError, match=r"has no gradient: pass x\.detach\(\)"):
        ours.running_max(x)
    assert ours.running_max(x.detach()).equal(torch.cummax(x, 0).values)


@pytest.mark.parametrize("page", PAGES)
def test_gained_and_lost(page):
    text = (DOCS / "from" / f"{page}.md").read_text(encoding="utf-8")
    assert text.index("\n## Gained\n") < text.index("\n## Lost\n")
    assert {block.note for block in blocks(f"docs/from/{page}.md") if block.language != "python"} == {
        f"file: {Path(file).name}" for file in ("ours.pyx", "theirs.pyx" if page == "cython-numpy" else "theirs.cpp")
    }
