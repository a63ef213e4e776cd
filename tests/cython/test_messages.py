"""Cython reports each problem of a source once, and gives no advice that would lose errors."""

import pytest

from interop.build import Extension, cythonize
from interop.cython.translate import TranslationError, translate

FUSED = """\
cimport ATen as at

ctypedef fused number:
    short
    int
    long
    float
    double

cdef number f(number x, at.Tensor t) except *:
    cdef at.Tensor u = x
    return t.nothing + missing
"""
OURS = """\
cimport ATen as at

cdef at.Tensor helper(const at.Tensor& x) except * nogil:
    return at.neg(x)

cdef void caller(const at.Tensor& x) except * nogil:
    helper(x)
    caller(x)
"""
OTHER = """\
cdef void helper(double x) except * nogil:
    pass

cdef void caller(double x) except * nogil:
    helper(x)
    caller(x)
"""


def translated(folder, source, **options):
    path = folder / "m.pyx"
    path.write_text(source)
    return translate(str(path), "m", folder / "m.cpp", declarations=folder / "declarations", **options)


def test_an_error_in_a_fused_function_is_said_once(tmp_path, capfd):
    """Cython reports it only for the first type for which it is an error."""
    with pytest.raises(TranslationError) as raised:
        translated(tmp_path, FUSED, echo=True)
    lines = [one.line for one in raised.value.diagnostics]
    assert sorted(lines) == [11, 12, 12]
    assert "'nothing'" in str(raised.value.diagnostics)
    assert capfd.readouterr().err.count("undeclared name not builtin: missing") == 1


@pytest.mark.parametrize(("source", "is_said"), [(OURS, False), (OTHER, True)])
def test_the_gil_of_a_check_that_takes_none_is_not_mentioned(tmp_path, capfd, source, is_said):
    """With our headers the check takes no GIL; without them it is Cython's own, which does."""
    translated(tmp_path, source, echo=True)
    assert ("will always require the GIL" in capfd.readouterr().err) is is_said


@pytest.mark.parametrize("limited", [None, "cp311"])
def test_the_gil_of_a_check_under_the_limited_api_is_mentioned(tmp_path, monkeypatch, capfd, limited):
    """There our headers leave Cython's own check, because the thread state has no fields."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.pyx").write_text(OURS)
    cythonize(Extension("m", ["m.pyx"], stable="2.11", py_limited_api=limited), build_dir="build")
    assert ("will always require the GIL" in capfd.readouterr().err) is (limited is not None)


def test_the_name_of_that_check_is_cythons(tmp_path):
    """csrc/include/interop/callback.h can replace the check only under this name and this form of its call."""
    translated(tmp_path, OURS)
    text = (tmp_path / "m.cpp").read_text()
    assert "__Pyx_ErrOccurredWithGIL(void) {" in text
    assert "__Pyx_ErrOccurredWithGIL())" in text
