"""Cython reports each problem of a source once, and gives no advice that would lose errors."""

import subprocess
import sysconfig

import pytest
from conftest import needs_limited_api, needs_stable

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
# Modules of ours whose headers do not include the one that replaces Cython's exception check, and one whose does.
CIMPORTS = (
    *("instruction_sets cimport vectorized", "guards cimport NoGradGuard", "element_types cimport floating"),
    "parallel cimport Part",
)


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


def replaces_check(folder, source, **options):
    """Whether g++ finds that the C++ includes the header that replaces Cython's exception check."""
    found = translated(folder, source, echo=True, **options)
    extension = Extension("m", ["m.pyx"], **{"stable": "2.11"} if options.get("stable") else {})
    folders = [*found.include_dirs, *extension.include_dirs, sysconfig.get_path("include")]
    macros = ["-D" + name + (f"={value}" if value else "") for name, value in extension.define_macros]
    command = ["g++", "-std=c++20", "-M", *macros, *(f"-I{one}" for one in folders), folder / "m.cpp"]
    return "interop/callback.h" in subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("source", "options"),
    [
        (OURS, {}),
        pytest.param(OURS, {"stable": True}, marks=needs_stable),
        (OTHER, {}),
        *((f"from interop.{cimport}\n{OTHER}", {}) for cimport in CIMPORTS),
        pytest.param(f"from interop.parallel cimport Part\n{OTHER}", {"stable": True}, marks=needs_stable),
    ],
)
def test_the_gil_of_a_check_that_takes_none_is_not_mentioned(tmp_path, capfd, source, options):
    """With one of our headers the check takes no GIL; without it, the check is Cython's own, which does."""
    is_replaced = replaces_check(tmp_path, source, **options)
    assert ("will always require the GIL" in capfd.readouterr().err) is not is_replaced


@needs_stable
@pytest.mark.parametrize("limited", [None, pytest.param("cp311", marks=needs_limited_api)])
def test_the_gil_of_a_check_under_the_limited_api_is_mentioned(tmp_path, monkeypatch, capfd, limited):
    """There our headers leave Cython's own check, because the thread state has no fields."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.pyx").write_text(OURS)
    cythonize(Extension("m", ["m.pyx"], stable="2.11", py_limited_api=limited), build_dir="build")
    assert ("will always require the GIL" in capfd.readouterr().err) is (limited is not None)


@pytest.mark.parametrize(
    "source", ['# distutils: libraries = "m\n', "cimport torch\ndef f():\n    torch.NoGradGuard()\n"]
)
def test_the_line_of_an_error_after_a_form_feed(tmp_path, source):
    """A form feed ends a line only for str.splitlines()."""
    with pytest.raises(TranslationError) as raised:
        translated(tmp_path, f"# a\fb\n{source}")
    assert raised.value.text == source.split("\n")[-2]


def test_the_name_of_that_check_is_cythons(tmp_path):
    """csrc/include/interop/callback.h can replace the check only under this name and this form of its call."""
    translated(tmp_path, OURS)
    text = (tmp_path / "m.cpp").read_text()
    assert "__Pyx_ErrOccurredWithGIL(void) {" in text
    assert "__Pyx_ErrOccurredWithGIL())" in text
