"""docs/comparison.md: its statements about torch, and its table."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from doc_blocks import DOCS, ROOT

PAGE = (DOCS / "comparison.md").read_text(encoding="utf-8")


def rows(text):
    """The rows of the feature table, by their titles."""
    return dict(re.findall(r"^\| ([^|]*) \| (.*) \|$", text.partition("<!-- figures")[0], re.MULTILINE))


def test_the_readme_has_the_same_table():
    page, readme = rows(PAGE), rows((ROOT / "README.md").read_text(encoding="utf-8"))
    assert page.pop("version").startswith("this one |")
    assert page == readme
    assert len(page) == 6


def test_versions():
    header = Path(torch.__file__).parent / "include" / "pybind11" / "detail" / "common.h"
    parts = re.findall(r"^#define PYBIND11_VERSION_(?:MAJOR|MINOR|MICRO) +(\w+)$", header.read_text(), re.MULTILINE)
    release = ".".join(torch.__version__.split(".")[:2])
    if f"of torch {release} |" not in PAGE:
        pytest.skip(f"the page is about another torch than {release}")
    assert f"| {'.'.join(parts)}, of torch {release} |" in PAGE


def test_dlpack_carries_no_graph():
    with pytest.raises(BufferError, match="gradient"):
        torch.ones(1, requires_grad=True).__dlpack__()


def test_operators_of_torch_library_take_no_arrays():
    def f(x: np.ndarray) -> torch.Tensor:
        raise NotImplementedError

    with pytest.raises(ValueError, match="unsupported type"):
        torch.library.infer_schema(f, mutates_args=())
