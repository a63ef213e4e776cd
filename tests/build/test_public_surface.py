"""The public interface matches tests/build/public_surface.txt, so that every change to it shows in a diff."""

import pytest
from conftest import TESTS, load_script


@pytest.fixture(scope="module")
def tool():
    """tools/public_surface.py as a module."""
    return load_script(TESTS.parent / "tools" / "public_surface.py")


def test_it_is_as_recorded(tool):
    changed = tool.difference()
    assert not changed, f"what users call has changed:\n{changed}\n\nIf that is wanted: {tool.COMMAND}"


@pytest.mark.parametrize(
    "line",
    [
        "ATen.Parallel.get_num_threads: int get_num_threads() except +translate_exception nogil",
        "torch.Tensor: from torch._tensor cimport Tensor",
        "interop.TensorBuffer.nbytes: @property (self) -> int",
        "interop.load(**libraries: Sequence[str])",
        "python -m interop doctor: --no-import: do not import MODULE.so, because its code would run",
    ],
)
def test_what_is_lost_is_shown(tool, tmp_path, monkeypatch, line):
    recorded = tool.SURFACE.read_text(encoding="utf-8")
    assert f"\n{line}\n" in recorded
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "SURFACE", tmp_path / "public_surface.txt")
    monkeypatch.setattr(tool, "surface", lambda: recorded.replace(f"\n{line}\n", "\n"))
    tool.SURFACE.write_text(recorded, encoding="utf-8")
    assert f"\n-{line}" in tool.difference()


def test_declarations_as_the_grammar_has_them(tool, tmp_path):
    """Handles comments, continued lines, nested blocks and function bodies."""
    (tmp_path / "__init__.pxd").write_text(
        """\
# cdef extern from "no.h": int no()
from libc.stdint cimport int64_t
from c10 cimport (  # handed on
    Half, BFloat16,
)

cdef extern from "a.h" namespace "a" nogil:
    cppclass Class "a::Class"[T]:
        Class() noexcept  # the one
        T& operator[](
            size_t index,
        ) except +
        enum Kind:
            ONE
    int field
    ctypedef void (*Callback)(int n) noexcept

cdef inline int twice(int n) noexcept:
    cdef int result = 2 * n
    return result
"""
    )
    assert [line.removeprefix(".") for line in tool.declarations(tmp_path / "__init__.pxd", tmp_path)] == [
        "__init__.int64_t: from libc.stdint cimport int64_t",
        "__init__.Half: from c10 cimport Half",
        "__init__.BFloat16: from c10 cimport BFloat16",
        '__init__.Class: cppclass Class "a::Class"[T]',
        "__init__.Class.Class: Class() noexcept nogil",
        "__init__.Class.operator []: T& operator[](size_t index) except + nogil",
        "__init__.Class.Kind: enum Kind",
        "__init__.Class.Kind.ONE: ONE",
        "__init__.field: int field",
        "__init__.Callback: ctypedef void (*Callback)(int n) noexcept nogil",
        "__init__.twice: cdef inline int twice(int n) noexcept",
    ]
