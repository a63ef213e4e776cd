"""Every block of Cython in docs/cimport-guide.md compiles and runs, as one module."""

import contextlib
import re

import pytest
import torch
from conftest import BUILD, TESTS, import_from, install_project

GUIDE = TESTS.parent / "docs" / "cimport-guide.md"
DEFINITION = re.compile(r"cdef class |def |cdef .*\).*:\n")
BLOCK = re.compile(r"(?:<!-- (?P<note>.*?) -->\n)?```cython\n(?P<code>.*?)```", re.DOTALL)


def blocks():
    """The notes and texts of all blocks: the prelude first."""
    return [(block["note"] or "", block["code"]) for block in BLOCK.finditer(GUIDE.read_text())]


def pyx():
    """The module. Blocks of statements become functions: statements_0 and so on."""
    (_, prelude), *others = blocks()
    imports, _, variables = prelude.partition("\n\n")
    parts = [imports, *(code for note, code in others if not note and DEFINITION.match(code))]
    for i, code in enumerate(statements()):
        body = "".join(f"    {line}\n" for line in (variables + code).splitlines())
        parts.append(f"def statements_{i}(torch.Tensor x not None, torch.Tensor y not None):\n{body}")
    parts.append("def call(name, *arguments): return globals()[name](*arguments)\n")
    return "\n\n".join(parts)


def statements():
    """The blocks of statements after the prelude."""
    return [code for note, code in blocks()[1:] if not note and not DEFINITION.match(code)]


SETUP = """\
from setuptools import setup

from interop.build import BuildExtension, Extension

module = Extension("guide", ["guide.pyx"], extra_compile_args=["-O0"])
setup(name="guide", ext_modules=[module], cmdclass={"build_ext": BuildExtension})
"""


@pytest.fixture(scope="module")
def guide():
    (BUILD / "guide").mkdir(parents=True, exist_ok=True)
    (BUILD / "guide" / "guide.pyx").write_text(pyx())
    (BUILD / "guide" / "setup.py").write_text(SETUP)
    install_project(BUILD / "guide", BUILD / "guide-site")
    return import_from(BUILD / "guide-site", "guide")


def test_there_are_blocks():
    assert len(statements()) >= 6
    assert [note for note, _ in blocks() if note.startswith("not run")] == ["not run: there is no mine.h"]


@pytest.mark.parametrize("index", range(len(statements())))
def test_statements(guide, index):
    warns = (
        pytest.warns(UserWarning, match="was resized") if ".emit()" in statements()[index] else contextlib.nullcontext()
    )
    with torch.random.fork_rng(), warns:
        guide.call(f"statements_{index}", torch.randn(2, 3), torch.randn(2, 3))


def test_functions(guide):
    x, w = torch.randn(2, 3), torch.randn(4, 3)
    assert guide.Cell(w).forward(x).equal(torch.nn.functional.linear(x, w))
    expected = x * 2
    assert guide.scale(x, 2.0) is x
    assert x.equal(expected)
    z = guide.like(x, torch.float64, torch.device("cpu"))
    assert (z.shape, z.dtype) == (x.shape, torch.float64)
